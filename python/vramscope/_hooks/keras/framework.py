"""Keras as the Python side knows it. Every Python process of a recorded run reads this (importing.py): constants, no imports."""

WORD = "keras"
NAME = "Keras"
MODULE = "keras"

WATCHED = {"keras": "vramscope._hooks.keras", "tf_keras": "vramscope._hooks.keras"}
PACKAGES = ("keras", "tf_keras")
