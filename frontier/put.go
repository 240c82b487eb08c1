package frontier

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

const (
	maxBatch      = 512     // items stored at once; as many again are read meanwhile
	maxBatchBytes = 1 << 20 // of a batch, about
)

// PutURLs reads items and acknowledges each, whatever becomes of it. What has come while a batch was being stored is
// the next batch. Reading waits while a whole batch waits, so a stream has at most 1024 items without answer.
func (s *Server) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	s.figures.putCalls.Add(1)
	log := s.streamLog(stream.Context())
	q := newPending()
	var storing sync.WaitGroup
	storing.Go(func() { s.storeAll(stream, q, log) })
	err := receive(stream, q)
	q.close()
	storing.Wait()
	return err
}

// streamLog numbers a stream of URLs, and returns the log that names it by its number and its client.
func (s *Server) streamLog(ctx context.Context) zerolog.Logger {
	with := s.log.With().Int64("stream", s.figures.streams.Add(1))
	if p, ok := peer.FromContext(ctx); ok {
		with = with.Stringer("client", p.Addr)
	}
	return with.Logger()
}

// receive reads until the client has no more.
func receive(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage], q *pending) error {
	var in pb.URLItem
	for {
		if err := stream.RecvMsg(&in); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if !q.add(&in) {
			return stream.Context().Err() // the client does not take acknowledgements any more
		}
	}
}

// storeAll stores what comes and acknowledges it, until all is done.
func (s *Server) storeAll(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage], q *pending, log zerolog.Logger) {
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

// storeBatch stores one batch and sets the status of each item. A client that has gone does not undo what it sent.
func (s *Server) storeBatch(ctx context.Context, b *batch, log zerolog.Logger) {
	var err error
	if s.stopping.Load() {
		err = errStopping
	} else {
		_, err = s.store.Put(context.WithoutCancel(ctx), &b.puts)
	}
	for i, ack := range b.places {
		b.acks[ack].Status = statusOf(b.puts.Verdict(i))
	}
	s.figures.count(b)
	for _, one := range b.bad {
		log.Debug().Err(one.err).Str("url", one.url).Int("malformed", b.malformed).Int("too_long", b.tooLong).Msg("frontier: item not stored")
	}
	if err != nil {
		log.Error().Err(err).Int("urls", b.puts.Len()).Msg("frontier: URLs were not stored; their acknowledgements say FAIL")
	}
}

var errStopping = errors.New("the server is stopping")

func statusOf(v docindex.Verdict) pb.AckMessage_Status {
	switch v {
	case docindex.New, docindex.Changed:
		return pb.AckMessage_OK
	case docindex.Same, docindex.Dropped:
		return pb.AckMessage_SKIPPED
	}
	return pb.AckMessage_FAIL
}

// batch is items that are stored together, with their acknowledgements in order.
type batch struct {
	puts      docindex.Puts
	places    []int // of the acknowledgement of each of puts
	acks      []pb.AckMessage
	bytes     int
	known     int   // items that bring news of known URLs
	completed int   // of them: never again
	malformed int   // items that no store can take; they are answered SKIPPED
	tooLong   int   // items with more bytes than are kept; they are answered FAIL
	bad       []bad // the first of these two
}

// maxBad is how many items of a batch that were not stored are logged.
const maxBad = 3

// bad is an item that cannot be stored.
type bad struct {
	url string // its beginning
	err error
}

func (b *batch) reset() {
	b.puts.Reset()
	clear(b.acks) // lets go of what they alias
	*b = batch{puts: b.puts, places: b.places[:0], acks: b.acks[:0], bad: b.bad[:0]}
}

func (b *batch) full() bool { return len(b.acks) >= maxBatch || b.bytes >= maxBatchBytes }

// add adds an item. A malformed one is acknowledged as SKIPPED, as the Java service does. One that is too
// long would be stored there, so it is acknowledged as FAIL: clients read SKIPPED as "known".
func (b *batch) add(id string, it item) {
	if id == "" {
		id = it.info.GetUrl()
	}
	b.bytes += len(id) + len(it.info.GetUrl()) + len(it.info.GetKey())
	b.acks = append(b.acks, pb.AckMessage{ID: strings.ToValidUTF8(strings.Clone(id), "\uFFFD"), Status: pb.AckMessage_SKIPPED})
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
	b.places = append(b.places, len(b.acks)-1)
}

// pending is the batch that is being filled. The one that reads a stream fills it, the one that stores empties it.
type pending struct {
	mu     sync.Mutex // guards all below; held for memory work only
	change sync.Cond
	b      *batch
	closed bool // no more comes
	gone   bool // nobody stores any more
}

func newPending() *pending {
	q := &pending{b: new(batch)}
	q.change.L = &q.mu
	return q
}

// add adds an item; it waits while the batch is full. It answers false when nobody will store it.
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

// swap waits for items and takes them in exchange for an empty batch; nil: there are no more.
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

// PutDiscovered stores batch by batch; while one is being stored and answered, the next waits in flow control.
func (s *Server) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	s.figures.discoveredCalls.Add(1)
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
