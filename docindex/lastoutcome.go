package docindex

import "time"

// LastOutcome is what a store keeps of the last end of a document. It stays while the document is
// scheduled again, until the next end. The zero value: the document has not ended yet, or it ended
// before stores kept this.
type LastOutcome struct {
	// Known reports whether Kind is set. It is false although At is set if a URL Frontier client
	// reported the URL: its report says when to fetch the URL again, not how the last fetch ended.
	Known    bool
	Kind     Kind
	Status   int       // HTTP status of the last fetch; 0: no answer
	NoStatus bool      // Status is 0 because nobody reported it
	At       time.Time // when it ended, in whole seconds; zero: not known
}
