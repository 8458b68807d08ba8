"""What the files say: the kernels, the gate, the versions."""
