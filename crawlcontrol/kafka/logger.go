package kafka

import (
	"fmt"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// logger logs the messages of the Kafka client.
type logger struct{ log zerolog.Logger }

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
		event = l.log.Warn()
	case kgo.LogLevelDebug:
		event = l.log.Trace()
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		event = event.Str(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	event.Msg("Kafka: " + text)
}
