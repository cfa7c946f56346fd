"""The TensorFlow part of the package. Imported only if TensorFlow is available."""
