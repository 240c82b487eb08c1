package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"urlserver/configs"
)

// levelSwitch lets through what is at or above a level that may change at any time.
type levelSwitch struct{ least atomic.Int32 }

// Sample is for zerolog: whether to log at level.
func (s *levelSwitch) Sample(level zerolog.Level) bool { return int32(level) >= s.least.Load() }

// set takes a level as the settings have it.
func (s *levelSwitch) set(name string) {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.InfoLevel
	}
	s.least.Store(int32(level))
}

// newLogger logs to w as the settings say, without secrets, and as JSON to more; the switch changes its level.
func newLogger(w io.Writer, cfg configs.Log, secrets []string, more ...io.Writer) (zerolog.Logger, *levelSwitch) {
	if cfg.Format == configs.FormatPretty || cfg.Format == configs.FormatAuto && isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !isTerminal(w), TimeFormat: "2006-01-02 15:04:05"}
	}
	level := &levelSwitch{}
	level.set(cfg.Level)
	all := zerolog.MultiLevelWriter(append(more, zerolog.SyncWriter(hiding(w, secrets)))...)
	return zerolog.New(all).Level(zerolog.TraceLevel).Sample(level).With().Timestamp().Logger(), level
}

// leastHidden is the length of the shortest secret that is looked for: shorter ones would be found in what is none.
const leastHidden = 8

// hider passes on lines of JSON, with stars for what must not show: a peer may repeat what it was sent.
type hider struct {
	out     io.Writer
	secrets [][]byte // as JSON has them
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

// Write is for io.Writer.
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

// isTerminal tells whether people read what is written to w.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
