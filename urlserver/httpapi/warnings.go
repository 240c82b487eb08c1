package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	keptWarnings = 100 // the latest
	maxField     = 300 // bytes of a warning's text, and of its fields
)

// Warnings keeps the latest log lines of level warn and above. It is a writer for a zerolog.Logger,
// which writes JSON. Safe for concurrent use. Use NewWarnings.
type Warnings struct {
	secrets []string // and replacements, in turn

	mu   sync.Mutex // guards all below; held for memory work only
	last uint64
	all  []warning
}

// warning is one line of the log.
type warning struct {
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Level  string    `json:"level"`
	Text   string    `json:"text"`
	More   string    `json:"more"` // its other fields
}

// NewWarnings returns an empty list that replaces secrets in lines by stars.
func NewWarnings(secrets ...string) *Warnings {
	w := &Warnings{}
	for _, s := range secrets {
		if s != "" {
			w.secrets = append(w.secrets, s, "***")
		}
	}
	return w
}

// Write drops a line without a level.
func (w *Warnings) Write(line []byte) (int, error) { return len(line), nil }

// WriteLevel keeps a line of level warn and above.
func (w *Warnings) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level >= zerolog.WarnLevel && level < zerolog.NoLevel {
		w.keep(level, line)
	}
	return len(line), nil
}

func (w *Warnings) keep(level zerolog.Level, line []byte) {
	fields := map[string]any{}
	if json.Unmarshal(line, &fields) != nil {
		return
	}
	text, _ := fields[zerolog.MessageFieldName].(string)
	var more []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case zerolog.MessageFieldName, zerolog.LevelFieldName, zerolog.TimestampFieldName:
		default:
			more = append(more, fmt.Sprintf("%s: %v", name, fields[name]))
		}
	}
	one := warning{At: time.Now().UTC().Truncate(time.Millisecond), Level: level.String(),
		Text: w.clean(text), More: w.clean(strings.Join(more, ", "))}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	one.Number = w.last
	if len(w.all) == keptWarnings {
		w.all = append(w.all[:0], w.all[1:]...)
	}
	w.all = append(w.all, one)
}

func (w *Warnings) clean(text string) string {
	text = strings.ToValidUTF8(strings.NewReplacer(w.secrets...).Replace(text), "\ufffd")
	if len(text) > maxField {
		text = strings.ToValidUTF8(text[:maxField], "") + "…"
	}
	return text
}

// after returns at most most warnings with numbers above number, the latest ones, and the number of
// the last.
func (w *Warnings) after(number uint64, most int) (list []warning, last uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.all), most, int(min(w.last-min(w.last, number), keptWarnings)))
	return append([]warning{}, w.all[len(w.all)-n:]...), w.last
}
