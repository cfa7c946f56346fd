"""The TensorFlow half of the package. Imported only when TensorFlow is there."""
