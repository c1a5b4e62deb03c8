"""Data sets in folders, installed by name, from archives or from annotations."""
