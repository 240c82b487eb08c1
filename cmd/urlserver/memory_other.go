//go:build !linux

package main

import "math"

// machineMemory is not known here.
func machineMemory() int { return math.MaxInt }
