package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"urlserver/configs"
)

func TestLogFormat(t *testing.T) {
	for _, c := range []struct {
		format string
		json   bool
	}{
		{format: configs.FormatAuto, json: true}, // a buffer is not a terminal
		{format: configs.FormatJSON, json: true},
		{format: configs.FormatPretty},
	} {
		var out bytes.Buffer
		log, _ := newLogger(&out, configs.Log{Level: configs.LevelInfo, Format: c.format}, nil)
		log.Info().Str("key", "value").Msg("hello")
		if json.Valid(out.Bytes()) != c.json || !strings.Contains(out.String(), "hello") ||
			strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: %q", c.format, out.String())
		}
	}
}

func TestLogLevel(t *testing.T) {
	var out bytes.Buffer
	log, level := newLogger(&out, configs.Log{Level: configs.LevelWarn, Format: configs.FormatJSON}, nil)
	derived := log.With().Str("spider", "x").Logger()
	said := func() string {
		out.Reset()
		for _, l := range []func(){
			func() {
				derived.Trace().Msg("trace")
			}, func() { derived.Debug().Msg("debug") }, func() { derived.Info().Msg("info") },
			func() { derived.Warn().Msg("warn") }, func() { derived.Error().Msg("error") },
		} {
			l()
		}
		var words []string
		for _, w := range []string{"trace", "debug", "info", "warn", "error"} {
			if strings.Contains(out.String(), `"message":"`+w+`"`) {
				words = append(words, w)
			}
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct{ set, want string }{
		{set: configs.LevelWarn, want: "warn error"},
		{set: configs.LevelTrace, want: "trace debug info warn error"},
		{set: configs.LevelError, want: "error"},
		{set: configs.LevelDebug, want: "debug info warn error"},
		{set: configs.LevelInfo, want: "info warn error"},
	} {
		level.set(c.set)
		if got := said(); got != c.want {
			t.Errorf("level %s lets through %q; want %q", c.set, got, c.want)
		}
	}
}

func TestLogHidesSecrets(t *testing.T) {
	const quoted = `a"secret\of"quotes`
	for _, format := range []string{configs.FormatJSON, configs.FormatPretty} {
		var out bytes.Buffer
		log, _ := newLogger(&out, configs.Log{Level: configs.LevelInfo, Format: format},
			[]string{"plain-secret", quoted, "level"})
		log.Info().Str("key", "so: "+quoted).Msg("who is plain-secret?")
		text := out.String()
		if strings.Contains(text, "secret") || !strings.Contains(text, "who is ***?") ||
			!strings.Contains(text, "so: ***") {
			t.Errorf("%s: %s", format, text)
		}
		if format == configs.FormatJSON && !strings.Contains(text, `"level":"info"`) {
			t.Errorf("a short secret spoils the log: %s", text)
		}
	}
}
