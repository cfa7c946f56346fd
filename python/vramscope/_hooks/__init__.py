"""What vramscope adds to a framework when it is imported in a recorded process: marks, tags and source lines.

Each framework has a folder. Its framework.py names the imports to watch and the modules whose `install(module)` is called after them. A
failure turns that part off with one message and has no other effect.
"""
