"""Data: crowds that are drawn, data sets that are prepared as folders, and the demo.

`simulation` draws who answers what; a crowd is a class in `confusions`, `raters` or `answer_crowds`
and a line in the registry. `install` prepares a data set from files, archives and scripts, or by
name, from a recipe in `recipes`. May import `formats` and what is below it.
"""
