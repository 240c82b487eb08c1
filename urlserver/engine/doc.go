// Package engine is the daemon's logic without its I/O: it joins slots, robots
// rules, spiders and the doc index, and decides. Events go in as method calls,
// work for others comes out in Out, and time is told by Advance. So the owner
// goroutine of package urlserver and the simulation drive the same code.
//
// An Engine is not safe for concurrent use: one goroutine owns it.
package engine
