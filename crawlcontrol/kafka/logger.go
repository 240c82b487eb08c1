package kafka

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const repeatAfter = time.Minute // log the same warning at most so often

// warnings knows which warnings were logged in the last repeatAfter. While no broker answers, the client
// repeats its own several times a second.
type warnings struct {
	mu     sync.Mutex // guards logged
	logged map[string]time.Time
}

// repeats reports whether a warning was logged already. If not, the caller logs it.
func (w *warnings) repeats(warning string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if at, found := w.logged[warning]; found && now.Sub(at) < repeatAfter {
		return true
	}
	if w.logged == nil || len(w.logged) >= maxKnown {
		w.logged = map[string]time.Time{}
	}
	w.logged[warning] = now
	return false
}

// logger logs the messages of the Kafka client.
type logger struct {
	log      zerolog.Logger
	warnings *warnings
}

func (l logger) Level() kgo.LogLevel {
	switch l.log.GetLevel() {
	case zerolog.TraceLevel:
		return kgo.LogLevelDebug
	case zerolog.DebugLevel:
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (l logger) Log(level kgo.LogLevel, text string, pairs ...any) {
	event := l.log.Debug()
	switch level {
	case kgo.LogLevelError, kgo.LogLevelWarn:
		if l.warnings.repeats(text + about(pairs)) {
			return
		}
		event = l.log.Warn()
	case kgo.LogLevelDebug:
		event = l.log.Trace()
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		event = event.Str(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	event.Msg("Kafka: " + text)
}

// about returns what a message is about, and the code of its error.
func about(pairs []any) (text string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		switch pairs[i] {
		case "broker", "topic", "partition":
			text += fmt.Sprint(" ", pairs[i+1])
		case "err":
			err, _ := pairs[i+1].(error)
			text += code(err)
		}
	}
	return text
}

// code returns the name that Kafka has for an error, "" for an error of another kind. Texts of errors do not
// count: those of connections name a port that is new each time.
func code(err error) string {
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return " " + e.Message
	}
	return ""
}
