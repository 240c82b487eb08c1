package disk

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
)

// version is the version of the rows' layout. The program reads rows of oldVersion and later as
// they are. It refuses a store of any other version.
const (
	version = 9
	// without crawls; 2: without purged partitions; 3: documents' names do not contain owners; 4:
	// documents' rows do not contain the time and the status of the last outcome; 5: documents have
	// no unique, payload and depth; 6: no rows find, order and count queues; 7: queues' rows do not
	// contain branches; 8: all names are long
	oldVersion = 1
	// upgraded is the first version whose rows need no upgrade
	upgraded = 7
)

const shortNames = 1 // in the version row: see docNamer.short

// Open opens the store in a folder. It makes the folder and the store if there is none. Open takes
// time in proportion to the number of leased URLs, of queues with settings, of registered domains of
// crawls, and after a crash of queues that the last commits changed. The first Open of a store that
// an older version wrote takes some µs a queue.
func Open(cfg Config) (*Store, error) {
	s := newStore(cfg)
	if err := makePrivate(cfg.Path); err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	var err error
	if s.db.space, err = newSpace(cfg.Path, s.db.closing); err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	s.db.memtables = newMemtableFilter(s.db.space.table)
	s.db.DB, err = openDB(cfg.Path, options(s.db.space, s.db.cfg.Memory, &logger{log: cfg.Log, fatal: s.db.fatal},
		s.db.merging))
	if err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	s.db.space.check() // this records which folder it is; it does not matter yet whether there is room
	if err := s.load(); err != nil {
		s.queues.cold.counting.end()
		s.db.merging.end()
		close(s.db.closing) // or else a compaction may wait for room on the disk
		s.db.Close()
		s.db.space.removeSpare()
		return nil, fmt.Errorf("docindex: %s: %w", cfg.Path, err)
	}
	s.db.helpers.Go(s.countNowAndThen)
	s.db.helpers.Go(s.dropPauses)
	s.db.merging.begin()
	s.db.helpers.Go(s.clearNowAndThen)
	if cfg.Sync == Interval {
		s.db.helpers.Go(s.syncNowAndThen)
	}
	return s, nil
}

// newStore returns a store without a database.
func newStore(cfg Config) *Store {
	if cfg.Memory == 0 {
		cfg.Memory = DefaultMemory
	}
	s := &Store{
		db:     database{cfg: cfg, merging: newCompactions(), closing: make(chan struct{})},
		crawls: newCrawls(),
	}
	s.base.Init((*body)(s), s.crawls.stats)
	s.Contract = s.base.Contract()
	s.db.mu = &s.base.Mu
	s.txn.db, s.txn.queues, s.txn.crawls = &s.db, &s.queues, &s.crawls
	s.docs = documents{known: newKnownNames(),
		db: &s.db, txn: &s.txn, queues: &s.queues, crawls: &s.crawls, transits: &s.transits}
	s.queues = queueTable{journal: journal{most: maxJournal},
		keys: newQueueKeys(cfg.Memory), numbers: newQueueNumbers(cfg.Memory),
		db: &s.db, txn: &s.txn, sched: s.base.Sched, namer: &s.docs.namer, now: s.base.Now}
	s.queues.cold = coldQueues{table: &s.queues, db: &s.db, txn: &s.txn, sched: s.base.Sched,
		names: s.docs.known}
	s.crawls.txn, s.crawls.queues, s.crawls.clearing.docs = &s.txn, &s.queues, &s.docs
	s.notes.db = &s.db
	return s
}

// makePrivate makes a folder that only its owner can use. If the folder exists, makePrivate removes
// the permissions of all others. URLs show what somebody is interested in, so nobody else may read
// them.
func makePrivate(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("%s cannot be opened as an index: %w; choose another folder", path, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&0o700); err != nil {
		return fmt.Errorf("%s is open to others than its owner, and that cannot be changed: %w; run as "+
			"its owner, or choose another folder", path, err)
	}
	return nil
}

// syncNowAndThen syncs Pebble's log each syncInterval, if there were commits since, until the store
// is closed.
func (s *Store) syncNowAndThen() {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.db.closing:
			return
		case <-tick.C:
		}
		s.base.Mu.Lock()
		no := s.queues.journal.no
		s.base.Mu.Unlock()
		if s.db.synced.Load() == no {
			continue
		}
		if err := s.db.LogData(nil, pebble.Sync); err != nil {
			s.db.fatal(err)
		}
		s.db.synced.Store(no)
	}
}

// load reads all rows that the store keeps in memory.
func (s *Store) load() error {
	now := s.base.Now()
	if err := s.loadVersion(); err != nil {
		return err
	}
	if err := s.notes.load(); err != nil {
		return err
	}
	served, ahead, err := s.loadMeta(now)
	if err != nil {
		return err
	}
	if err := s.queues.cold.open(now, served); err != nil {
		return damaged(err)
	}
	if err := s.setEndsBack(now, ahead); err != nil {
		return damaged(err)
	}
	l := loading{s: s, now: now, changes: map[uint32][]queueChange{}}
	for _, step := range []struct {
		kind byte
		do   func(key, value []byte) error
	}{
		{journalRow, l.journal}, {totalRow, l.crawlTotals}, {setRow, l.setQueue}, {presetRow, l.preset},
		{crawlRow, l.crawl}, {partitionRow, l.partition}, {purgedRow, l.purgedPartition},
		{leaseBatchRow, l.leaseBatch}, {crawlSettingsRow, l.crawlSettings},
		{hostOverrideRow, l.hostOverride}, // after the leases, which would count as new requests to a host with a delay
	} {
		if err := s.db.each(step.kind, step.do); err != nil {
			return damaged(err)
		}
		switch step.kind {
		case journalRow:
			s.queues.before = s.queues.globals.queueNo // so that a step that follows finds the queues
			if err = l.upgrade(); err == nil {
				s.queues.cold.counting = counting{rows: s.db.NewSnapshot(), next: []byte{wakeRow}, from: now,
					loaded: map[uint32]struct{}{}}
			}
		case totalRow:
			s.base.Sched.CrawlsRestored()
			err = l.changed()
		}
		if err != nil {
			return damaged(err)
		}
	}
	return l.finish()
}

func damaged(err error) error {
	return fmt.Errorf("damaged: %w; put back a copy of the folder, or move it away to begin with an empty index", err)
}

// loadVersion reads the version row, which each store has. It writes the row if the database is
// new.
func (s *Store) loadVersion() error {
	value, err := s.db.get(metaKey(metaVersion))
	if err != nil {
		return damaged(err)
	}
	if value == nil {
		return s.begin()
	}
	r := reader{b: value}
	v := r.uint()
	if v < oldVersion || v > version || r.bad {
		return fmt.Errorf("it is of version %d, and this program reads version %d: run the program that "+
			"wrote it, or choose another folder", v, version)
	}
	copy(s.docs.namer.key[:], r.bytes(uint64(len(s.docs.namer.key))))
	copy(s.docs.namer.mark[:], r.bytes(uint64(len(s.docs.namer.mark))))
	s.docs.namer.short = len(r.b) > 0 && r.uint() == shortNames
	if r.bad {
		return damaged(errRow)
	}
	if s.queues.cold.upgrades = v < upgraded; v == version || s.queues.cold.upgrades {
		return nil
	}
	return s.writeVersion()
}

func (s *Store) begin() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	used := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if used {
		return fmt.Errorf("it is a database of something else; choose another folder")
	}
	s.docs.namer = newDocNamer()
	return s.writeVersion()
}

func (s *Store) writeVersion() error {
	value := binary.AppendUvarint(nil, version)
	value = append(append(value, s.docs.namer.key[:]...), s.docs.namer.mark[:]...)
	if s.docs.namer.short {
		value = binary.AppendUvarint(value, shortNames)
	}
	return s.db.Set(metaKey(metaVersion), value, pebble.Sync)
}

// loadMeta reads the rows that belong to the whole store. If the slots were in use shortly before
// the restart, served is now: all queues count as served at the slots then. Otherwise served is 0,
// and each queue's own row counts. ahead is by how much the clock is known to have been set back since.
func (s *Store) loadMeta(now int64) (served, ahead int64, err error) {
	for _, word := range []string{metaSlots, metaDelay, metaPassive, metaOutOfScope} {
		value, err := s.db.get(metaKey(word))
		if err != nil {
			return 0, 0, damaged(err)
		}
		if value == nil {
			continue
		}
		r := reader{b: value}
		switch word {
		case metaSlots:
			mark := r.int()
			if mark > now-slotMarkLast {
				served = now
			}
			ahead = max(0, mark-now)
		case metaDelay:
			s.base.Sched.SetDefaultDelay(r.int())
		case metaPassive:
			s.base.Inactive = true
		case metaOutOfScope:
			s.queues.globals.outcomes[docindex.OutOfScope] = int(r.uint())
		}
		if r.bad {
			return 0, 0, damaged(errRow)
		}
	}
	return served, ahead, nil
}
