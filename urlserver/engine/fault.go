package engine

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

const (
	faultNone       fault = iota
	faultSend             // pause, back-pressure and stop have no effect
	faultRobots           // what robots.txt forbids is sent
	faultUnasked          // documents go before their robots.txt is asked for
	faultOld              // a robots.txt holds for ever
	faultAgain            // an outcome is reported twice
	faultUnreported       // some outcomes are not reported
	faultKind             // a document that is done counts as timed out
	faultQuarantine       // what has just ended is taken again
	faultRoom             // a spider gets more than it may have
	faultAlien            // a spider ends what another one has
	faultWire             // lines that are long on their way count from when they were decided on
	faultAddress          // a document is sent to where its host's name leads now
	faultGroup            // groups that rules name do not count
	faultRules            // changed rules do not hold for hosts that are known
	faultAsk              // the index is asked while it is being asked
	faultSleep            // the engine sleeps too long
	faultSpin             // the engine never sleeps
	faultChoice           // any spider gets documents, however slow
	faultPlaces           // robots.txt that hang keep their places, and there are few
	faultOnce             // a robots.txt that cannot be had is asked for once
	faultGiveUp           // a name that fails for now is given up at once
	faultBlame            // what is lost with others is taken for the cause
	faultHangUp           // a spider is not hung up on after a time-out
	faultIntake           // documents of names that fail count against the intake of others
	faultStay             // a host is not looked up again while it has documents
	faultNotes            // notes of robots.txt are not looked for
	faultNoteAge          // notes of robots.txt count as new
	faultMemory           // rules of robots.txt are not dropped
	faultVerdict          // the engine makes costly verdicts itself
	faultCharge           // costly verdicts are not charged
	faultSaid             // a spider gets more than it said
	faultEarly            // what a spider gave back comes sooner than it said
	faultBack             // what a spider gave back counts as timed out
)
