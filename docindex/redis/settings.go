package redis

import (
	"context"
	"fmt"
	"strconv"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// The largest values of settings.
const (
	maxDelay   = 1<<32 - 1 // s; the URL Frontier API has 32 bits for it
	maxBlocked = 1 << 51   // ms since 1970; Lua's numbers are exact up to 1 << 53
)

// Set is [docindex.Frontier.Set].
func (s *Store) Set(ctx context.Context, set docindex.Setting) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := set.Check(); err != nil {
		return err
	}
	switch set.Kind {
	case docindex.SetActive:
		_, err := s.everywhere(ctx, setScript, "active", flag(set.Value != 0))
		return err
	case docindex.SetDelay:
		return s.setDelay(ctx, set)
	case docindex.SetBlock:
		until := int64(0)
		if set.Value > 0 { // the second itself is blocked, too
			until = int64(min(set.Value, maxBlocked/1000-1)+1) * 1000
		}
		return s.setQueue(ctx, set, "b", until)
	case docindex.SetLimit:
		return s.setQueue(ctx, set, "l", int64(min(set.Value, 1<<32-1)))
	}
	return fmt.Errorf("setting %d: there is none", set.Kind)
}

func (s *Store) setDelay(ctx context.Context, set docindex.Setting) error {
	delay := int64(min(set.Value, maxDelay)) * 1000
	if len(set.Key) > 0 {
		return s.setQueue(ctx, set, "d", delay)
	}
	if _, err := s.everywhere(ctx, setScript, "delay", decimal(delay)); err != nil {
		return err
	}
	for shard := range shards {
		for _, consumer := range []string{slotConsumer, frontierConsumer} {
			if err := s.refresh(ctx, shard, consumer); err != nil {
				return err
			}
		}
	}
	return s.recall(ctx, docindex.Setting{})
}

// refresh computes again when the waiting queues of a consumer may be served.
func (s *Store) refresh(ctx context.Context, shard int, consumer string) error {
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, refreshScript, consumer, cursor)
		parts := list(a.value)
		if err != nil || len(parts) != 1 {
			return err
		}
		if cursor = text(parts[0]); cursor == "0" {
			return nil
		}
	}
}

func (s *Store) setQueue(ctx context.Context, set docindex.Setting, field string, value int64) error {
	if set.Host {
		return s.setHost(ctx, set, field, value)
	}
	a, err := s.one(ctx, shardOf(string(set.Key)), setScript, "queue", string(set.Crawl), string(set.Key),
		field, decimal(value))
	if err != nil {
		return err
	}
	if parts := list(a.value); len(parts) == 1 && number(parts[0]) == 0 {
		return docindex.ErrTooMany
	}
	return s.recall(ctx, set)
}

// Active is [docindex.Frontier.Active].
func (s *Store) Active(ctx context.Context) (bool, error) {
	_, passive, err := s.general(ctx)
	return err == nil && !passive, err
}

// general returns the settings of all queues: the delay in ms, "" if none is set, and whether URL
// Frontier clients are not served.
func (s *Store) general(ctx context.Context) (delay string, passive bool, err error) {
	a, err := s.one(ctx, 0, settingsScript, "general", "")
	if parts := list(a.value); len(parts) == 2 {
		return text(parts[0]), text(parts[1]) != "", err
	}
	return "", false, err
}

// Settings is [docindex.Inspector.Settings].
func (s *Store) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	delay, passive, err := s.general(ctx)
	if err != nil {
		return err
	}
	var all []docindex.Setting
	if passive {
		all = append(all, docindex.Setting{Kind: docindex.SetActive})
	}
	all = addSetting(all, docindex.Setting{}, docindex.SetDelay, delay, 1000)
	for i := range all {
		if !visit(&all[i]) {
			return nil
		}
	}
	for _, what := range []string{ofHosts, "preset", "queues"} {
		for shard := range shards {
			if goOn, err := s.settingsOf(ctx, shard, what, visit); err != nil || !goOn {
				return err
			}
		}
	}
	return nil
}

// settingsOf visits the settings of one sort in a shard.
func (s *Store) settingsOf(ctx context.Context, shard int, what string,
	visit func(*docindex.Setting) bool) (bool, error) {
	var all []docindex.Setting
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, settingsScript, what, cursor)
		parts := list(a.value)
		if err != nil || len(parts) != 2 {
			return false, err
		}
		for m := list(parts[1]); len(m) >= 5; m = m[5:] {
			one := docindex.Setting{Scope: docindex.Scope{Crawl: []byte(text(m[0])),
				Key: []byte(text(m[1]))}, Host: what == ofHosts}
			all = addSetting(all, one, docindex.SetDelay, text(m[2]), 1000)
			if until := text(m[3]); until != "" {
				all = addSetting(all, one, docindex.SetBlock, until, 1000)
				all[len(all)-1].Value--
			}
			all = addSetting(all, one, docindex.SetLimit, text(m[4]), 1)
		}
		if cursor = text(parts[0]); cursor == "0" {
			break
		}
	}
	all = embedded.SortSettings(all)
	for i := range all {
		if !visit(&all[i]) {
			return false, nil
		}
	}
	return true, nil
}

// addSetting appends a setting to all. value is in parts of the setting's unit; "": it is not set.
func addSetting(all []docindex.Setting, one docindex.Setting, which docindex.SettingKind, value string,
	parts uint64) []docindex.Setting {
	if value == "" {
		return all
	}
	n, _ := strconv.ParseUint(value, 10, 64)
	one.Kind, one.Value = which, n/parts
	return append(all, one)
}
