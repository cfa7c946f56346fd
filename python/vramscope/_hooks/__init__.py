"""What vramscope adds to a framework when it is imported in a recorded process: marks, tags and source lines.

One module for each framework with a function `install(module)`; a failure turns that part off, says so once, and nothing else.
"""
