package main

import (
	"io"
	"os"
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

// newLogger logs to w as the settings say, and as JSON to more; the switch changes its level.
func newLogger(w io.Writer, cfg configs.Log, more ...io.Writer) (zerolog.Logger, *levelSwitch) {
	if cfg.Format == configs.FormatPretty || cfg.Format == configs.FormatAuto && isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !isTerminal(w), TimeFormat: "2006-01-02 15:04:05"}
	}
	level := &levelSwitch{}
	level.set(cfg.Level)
	all := zerolog.MultiLevelWriter(append(more, zerolog.SyncWriter(w))...)
	return zerolog.New(all).Level(zerolog.TraceLevel).Sample(level).With().Timestamp().Logger(), level
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
