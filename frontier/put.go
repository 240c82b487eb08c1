package frontier

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

const (
	maxBatch      = 512     // items stored at once; as many again are read meanwhile
	maxBatchBytes = 1 << 20 // bytes of a batch, about
)

// PutURLs reads items and acknowledges each, whatever its result. The items that arrive while one
// batch is being stored make the next batch. Reading pauses while a whole batch waits, so a stream
// has at most 1024 unanswered items.
func (s *Server) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	s.counters.putCalls.Add(1)
	log := s.streamLog(stream.Context())
	q := newPending()
	var storing sync.WaitGroup
	storing.Go(func() { s.storeAll(stream, q, log) })
	err := receive(stream, q)
	q.close()
	storing.Wait()
	return err
}

// streamLog numbers a stream of URLs, and returns a log with the number and the client's address.
func (s *Server) streamLog(ctx context.Context) zerolog.Logger {
	with := s.log.With().Int64("stream", s.counters.streams.Add(1))
	if p, ok := peer.FromContext(ctx); ok {
		with = with.Stringer("client", p.Addr)
	}
	return with.Logger()
}

// receive reads until the client sends no more.
func receive(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage], q *pending) error {
	var in incoming
	for {
		if err := stream.RecvMsg(&in); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if !q.add(&in.URLItem) {
			return stream.Context().Err() // the client no longer takes acknowledgements
		}
	}
}

// storeAll stores the batches of q and acknowledges their items, until q ends.
func (s *Server) storeAll(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage], q *pending,
	log zerolog.Logger) {
	b := new(batch)
	for {
		if b = q.swap(b); b == nil {
			return
		}
		s.storeBatch(stream.Context(), b, log)
		for i := range b.acks {
			if err := stream.SendMsg(&b.acks[i]); err != nil {
				q.abandon()
				return
			}
		}
		b.reset()
	}
}

// storeBatch stores one batch and sets the status of each item, even if the client has gone.
func (s *Server) storeBatch(ctx context.Context, b *batch, log zerolog.Logger) {
	var err error
	if s.stopping.Load() {
		err = errStopping
	} else {
		err = s.put(context.WithoutCancel(ctx), b)
	}
	for i, ack := range b.places {
		b.acks[ack].Status = statusOf(b.puts.Verdict(i))
	}
	s.counters.count(b)
	for _, one := range b.bad {
		log.Debug().Err(one.err).Str("url", one.url).Int("malformed", b.malformed).Int("too_long",
			b.tooLong).Msg("frontier: item not stored")
	}
	if err != nil {
		s.failures.log(log, err, b.puts.Len())
	}
}

// failures logs batches that were not stored, one a second at most: an index may be full for long. The zero
// value is ready.
type failures struct {
	mu      sync.Mutex // guards all below
	logged  time.Time
	skipped int
}

func (f *failures) log(log zerolog.Logger, err error, urls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.logged) < time.Second {
		f.skipped++
		return
	}
	log.Error().Err(err).Int("urls", urls).Int("not_shown", f.skipped).
		Msg("frontier: URLs were not stored; their acknowledgements say FAIL")
	f.logged, f.skipped = now, 0
}

// put stores a batch. It stores the answers of hosts first, so that a host that backs off is not
// given out again when its URLs are reported.
func (s *Server) put(ctx context.Context, b *batch) error {
	if len(b.answers) > 0 {
		if err := s.store.Answered(ctx, b.answers); err != nil {
			return err
		}
	}
	_, err := s.store.Put(ctx, &b.puts)
	return err
}

var errStopping = errors.New("the server is stopping")

func statusOf(v docindex.Verdict) pb.AckMessage_Status {
	switch v {
	case docindex.New, docindex.Changed:
		return pb.AckMessage_OK
	case docindex.Same, docindex.Dropped, docindex.Outside:
		return pb.AckMessage_SKIPPED
	}
	return pb.AckMessage_FAIL
}

// batch is items that are stored together, with their acknowledgements in order.
type batch struct {
	puts      docindex.Puts
	places    []int // index in acks of each of puts
	acks      []pb.AckMessage
	ids       []byte // the IDs of acks, which alias it
	bytes     int
	known     int   // items that report results
	completed int   // those of known that are never due again
	malformed int   // items that no store can hold; their answer is SKIPPED
	tooLong   int   // items that are too long; their answer is FAIL
	bad       []bad // the first ones of these two kinds
	answers   []docindex.HostAnswer
}

// maxKeptIDs bounds the memory for IDs that an idle stream keeps.
const maxKeptIDs = 128 << 10

// maxBad is how many items of a batch that were not stored are logged.
const maxBad = 3

// bad is an item that cannot be stored.
type bad struct {
	url string // its beginning
	err error
}

func (b *batch) reset() {
	b.puts.Reset()
	clear(b.acks) // releases the memory that they alias
	if cap(b.ids) > maxKeptIDs {
		b.ids = nil
	}
	*b = batch{puts: b.puts, places: b.places[:0], acks: b.acks[:0], ids: b.ids[:0], bad: b.bad[:0],
		answers: b.answers[:0]}
}

// keep returns a copy of a text that is valid until b is reset.
func (b *batch) keep(text string) string {
	from := len(b.ids)
	b.ids = append(b.ids, text...)
	return unsafe.String(unsafe.SliceData(b.ids[from:]), len(text))
}

func (b *batch) full() bool { return len(b.acks) >= maxBatch || b.bytes >= maxBatchBytes }

// add adds a copy of an item. A malformed item is acknowledged as SKIPPED, as the Java service
// does. That service would store an item that is too long, so this one is acknowledged as FAIL:
// clients read SKIPPED as "known".
func (b *batch) add(id string, it item) {
	if id == "" {
		id = it.info.GetUrl()
	}
	b.bytes += len(id) + len(it.info.GetUrl()) + len(it.info.GetKey())
	b.acks = append(b.acks, pb.AckMessage{ID: b.keep(strings.ToValidUTF8(id, "\uFFFD")),
		Status: pb.AckMessage_SKIPPED})
	if it.known {
		b.known++
	}
	if err := it.addTo(&b.puts); err != nil {
		if errors.Is(err, docindex.ErrTooLong) {
			b.acks[len(b.acks)-1].Status = pb.AckMessage_FAIL
			b.tooLong++
		} else {
			b.malformed++
		}
		if url := it.info.GetUrl(); len(b.bad) < maxBad {
			b.bad = append(b.bad, bad{strings.Clone(url[:min(len(url), 200)]), err})
		}
		return
	}
	if it.due == docindex.Never {
		b.completed++
	}
	if it.known && len(it.info.Metadata) > 0 {
		b.addAnswer(it.info)
	}
	b.places = append(b.places, len(b.acks)-1)
}

// pending is the batch that is being filled. The goroutine that reads a stream fills it, and the
// one that stores takes it.
type pending struct {
	mu     sync.Mutex // guards all below; held for memory work only
	change sync.Cond
	b      *batch
	closed bool // no more items come
	gone   bool // nobody stores any more
}

func newPending() *pending {
	q := &pending{b: new(batch)}
	q.change.L = &q.mu
	return q
}

// add adds an item. It waits while the batch is full. It reports false if nobody will store the
// item.
func (q *pending) add(in *pb.URLItem) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.b.full() && !q.gone {
		q.change.Wait()
	}
	if q.gone {
		return false
	}
	q.b.add(in.ID, read(in))
	if len(q.b.acks) == 1 {
		q.change.Signal()
	}
	return true
}

// swap waits for items, and returns them in exchange for an empty batch. It returns nil if there
// are no more.
func (q *pending) swap(empty *batch) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.b.acks) == 0 && !q.closed {
		q.change.Wait()
	}
	if len(q.b.acks) == 0 {
		return nil
	}
	filled := q.b
	q.b = empty
	q.change.Signal()
	return filled
}

func (q *pending) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Signal()
}

func (q *pending) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone = true
	q.change.Signal()
}

// PutDiscovered stores one batch after the other. While one is stored and answered, gRPC's flow
// control holds back the next.
func (s *Server) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	s.counters.discoveredCalls.Add(1)
	log := s.streamLog(stream.Context())
	var in pb.DiscoveredBatch
	var ack pb.BatchAck
	var b batch
	for {
		if err := stream.RecvMsg(&in); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, info := range in.Items {
			b.add("-", item{info: info, due: docindex.Now})
		}
		s.storeBatch(stream.Context(), &b, log)
		ack.ID, ack.Statuses = strings.ToValidUTF8(in.ID, "\uFFFD"), ack.Statuses[:0]
		for i := range b.acks {
			ack.Statuses = append(ack.Statuses, b.acks[i].Status)
		}
		b.reset()
		if err := stream.SendMsg(&ack); err != nil {
			return err
		}
	}
}
