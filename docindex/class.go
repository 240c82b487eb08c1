package docindex

// Class says what came back of a document: the first digit of its HTTP status, or how it ended
// without a fetch that was answered.
type Class uint8

const (
	Class2xx Class = iota
	Class3xx
	Class4xx
	Class5xx
	ClassNone // a spider asked, and got no answer, told no status, or told one that is in no other class
	ClassRobots
	ClassDNS
	ClassTimeout
	ClassInvalid
	ClassOutOfScope
	ClassStopped
	ClassExpired

	Classes = int(ClassExpired) + 1 // how many there are
)

var classWords = [Classes]string{
	Class2xx: "2xx", Class3xx: "3xx", Class4xx: "4xx", Class5xx: "5xx", ClassNone: "none",
	ClassRobots: "robots", ClassDNS: "dns", ClassTimeout: "timeout", ClassInvalid: "invalid",
	ClassOutOfScope: "out_of_scope", ClassStopped: "stopped", ClassExpired: "expired",
}

// String returns the contract's word for c.
func (c Class) String() string { return word(classWords[:], int(c)) }

// ClassOf returns the class of a document that ended as kind. The status counts for [Done] only; 0
// is no answer.
func ClassOf(kind Kind, status int) Class {
	switch kind {
	case Done:
		if status >= 200 && status < 600 {
			return Class(status/100 - 2)
		}
		return ClassNone
	case Timeout:
		return ClassTimeout
	case Robots:
		return ClassRobots
	case DNS:
		return ClassDNS
	case Stopped:
		return ClassStopped
	case Expired:
		return ClassExpired
	case OutOfScope:
		return ClassOutOfScope
	}
	return ClassInvalid
}

// Outcome returns the word for how documents of the class ended: "done" for those that a spider
// fetched, well or not.
func (c Class) Outcome() string {
	if c <= ClassNone {
		return Done.String()
	}
	return c.String()
}
