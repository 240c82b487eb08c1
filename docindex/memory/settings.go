package memory
