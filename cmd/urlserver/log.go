package main

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/internal/clihelp"
)

// levelSwitch is the least level to log. It may change at any time.
type levelSwitch struct{ least atomic.Int32 }

// Sample implements zerolog.Sampler.
func (s *levelSwitch) Sample(level zerolog.Level) bool { return int32(level) >= s.least.Load() }

// set sets the level by the name in the settings.
func (s *levelSwitch) set(name string) {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.InfoLevel
	}
	s.least.Store(int32(level))
}

// newLogger returns a logger that writes to w as the settings say, without secrets, and as JSON to
// more. The switch changes its level. All of them may be called by any goroutine.
func newLogger(w io.Writer, cfg configs.Log, secrets []string, more ...io.Writer) (zerolog.Logger,
	*levelSwitch) {
	if cfg.Format == configs.FormatPretty || cfg.Format == configs.FormatAuto && clihelp.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !clihelp.IsTerminal(w), TimeFormat: clihelp.TimeFormat}
	}
	level := &levelSwitch{}
	level.set(cfg.Level)
	all := zerolog.MultiLevelWriter(append(more, hiding(w, secrets))...)
	return zerolog.New(all).Level(zerolog.TraceLevel).Sample(level).With().Timestamp().Logger(), level
}

// leastHidden is the length of the shortest secret that is hidden. Shorter ones would match text
// that is no secret.
const leastHidden = 8

// hider replaces secrets in lines of JSON with stars. A peer may repeat what it received.
type hider struct {
	out     io.Writer
	secrets [][]byte // in the form that they have in JSON
}

func hiding(out io.Writer, secrets []string) hider {
	h := hider{out: out}
	for _, s := range secrets {
		if len(s) >= leastHidden {
			h.secrets = append(h.secrets, []byte(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)))
		}
	}
	return h
}

// Write implements io.Writer.
func (h hider) Write(line []byte) (int, error) {
	shown := line
	for _, s := range h.secrets {
		if bytes.Contains(shown, s) {
			shown = bytes.ReplaceAll(shown, s, []byte("***"))
		}
	}
	if _, err := h.out.Write(shown); err != nil {
		return 0, err
	}
	return len(line), nil
}
