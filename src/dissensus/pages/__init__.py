"""What any view is made of: sections, tables, charts, words; how pages and terminals show them.

Data without layout stands in `sections`; `page`, `terminal` and `charts` show it, and `wording` has
numbers in words. Imports `base` only: what it shows is given to it. A new part of a section is a
class in `sections`, which page and terminal then have to show.
"""
