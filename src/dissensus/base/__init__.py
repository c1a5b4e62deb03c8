"""What knows no answers: arrays, names, probability, iteration, engines, files, storage, progress.

Everything else may import it, and it imports nothing of the package but errors. A function goes
into the file of its idea: of arrays into `arrays`, of names into `names`, and so on.
"""
