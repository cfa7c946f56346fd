# A training with the memory callback beside Keras' own TensorBoard callback, as the guide has it. Prints the callback's rows.
import json
import sys

import keras
import numpy as np
import vramscope.keras

model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(4)])
model.compile("adam", "mse", jit_compile=False)
x, y = np.zeros((256, 32), "float32"), np.zeros((256, 4), "float32")
memory = vramscope.keras.MemoryCallback(target_batches=[1, 3], reset="epoch", log_dir=sys.argv[1])
model.fit(x, y, batch_size=64, epochs=3, validation_data=(x[:64], y[:64]), verbose=0,
          callbacks=[memory, keras.callbacks.TensorBoard(sys.argv[1], update_freq=1, write_graph=False)])
print(json.dumps([row._asdict() for row in memory.rows]))
