package engine

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

const (
	FaultNone       fault = iota
	FaultSend             // pause, back-pressure and stop have no effect
	FaultRobots           // what robots.txt forbids is sent
	FaultUnasked          // documents go before their robots.txt is asked for
	FaultOld              // a robots.txt holds for ever
	FaultAgain            // an outcome is reported twice
	FaultUnreported       // some outcomes are not reported
	FaultKind             // a document that is done counts as timed out
	FaultQuarantine       // what has just ended is taken again
	FaultRoom             // a spider gets more than it may have
	FaultAlien            // a spider ends what another one has
	FaultWire             // lines that are long on their way count from when they were decided on
	FaultAddress          // a document is sent to where its host's name leads now
	FaultGroup            // groups that rules name do not count
	FaultRules            // changed rules do not hold for hosts that are known
	FaultAsk              // the index is asked while it is being asked
	FaultSleep            // the engine sleeps too long
	FaultSpin             // the engine never sleeps
	FaultChoice           // any spider gets documents, however slow
	FaultPlaces           // robots.txt that hang keep their places, and there are few
	FaultOnce             // a robots.txt that cannot be had is asked for once
	FaultGiveUp           // a name that fails for now is given up at once
	FaultBlame            // what is lost with others is taken for the cause
	FaultHangUp           // a spider is not hung up on after a time-out
	FaultIntake           // documents of names that fail count against the intake of others
	FaultStay             // a host is not looked up again while it has documents
	FaultNotes            // notes of robots.txt are not looked for
	FaultNoteAge          // notes of robots.txt count as new
	FaultMemory           // rules of robots.txt are not dropped
	FaultVerdict          // the engine makes costly verdicts itself
	FaultCharge           // costly verdicts are not charged
	FaultSaid             // a spider gets more than it said
	FaultEarly            // what a spider gave back comes sooner than it said
	FaultBack             // what a spider gave back counts as timed out
)
