// Package slabfield finds a field of the records of a slab. A function that returns the field of a
// record does the same, but a call of such a function for each access costs too much where linked
// lists are changed ten times for a document.
package slabfield

import (
	"unsafe"

	"urlserver/internal/container/slab"
)

// Field is a field of type F of the records of a slab. Use Of.
type Field[T, F any] struct {
	records *slab.Slab[T]
	offset  uintptr
}

// Of returns the field to which in returns a pointer.
func Of[T, F any](records *slab.Slab[T], in func(record *T) *F) Field[T, F] {
	var r T
	return Field[T, F]{records, uintptr(unsafe.Pointer(in(&r))) - uintptr(unsafe.Pointer(&r))}
}

// At returns the field of record id, which must be live. The pointer is valid until Slab.Free.
func (f *Field[T, F]) At(id uint32) *F {
	return (*F)(unsafe.Add(unsafe.Pointer(f.records.At(id)), f.offset))
}
