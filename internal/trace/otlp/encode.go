package otlp

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"urlserver/internal/trace"
)

// encode encodes a batch as a request. On the wire, TracesData equals ExportTraceServiceRequest,
// whose package would import a gateway.
func encode(batch []timed, version string) ([]byte, error) {
	scope := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: "urlserver"}}
	for i := range batch {
		scope.Spans = append(scope.Spans, spansOf(&batch[i])...)
	}
	return proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "urlserver"),
			text("service.version", version)}},
		ScopeSpans: []*otlp.ScopeSpans{scope},
	}}})
}

// spansOf returns the span of a document, followed by the spans of its phases. These lie within it.
func spansOf(t *timed) []*otlp.Span {
	traceID := binary.LittleEndian.AppendUint64(newID(), rand.Uint64())
	first, last := &t.Spans[0], &t.Spans[len(t.Spans)-1]
	root := &otlp.Span{
		TraceId: traceID, SpanId: newID(), Name: "document", Kind: otlp.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: unix(t, first.From), EndTimeUnixNano: unix(t, last.To),
		Attributes: append(names(t), outcome(t)...), Status: statusOf(t.Outcome),
	}
	spans := []*otlp.Span{root}
	attempt := int64(0)
	for i := range t.Spans {
		s := &t.Spans[i]
		span := &otlp.Span{
			TraceId: traceID, SpanId: newID(), ParentSpanId: root.SpanId, Name: s.Phase.String(),
			Kind:              otlp.Span_SPAN_KIND_INTERNAL,
			StartTimeUnixNano: unix(t, s.From), EndTimeUnixNano: unix(t, s.To),
		}
		if s.Phase == trace.Spider {
			attempt++
			span.Attributes = append(names(t), text("urlserver.spider", s.Spider),
				text("urlserver.end", s.End), number("urlserver.attempt", attempt))
		}
		spans = append(spans, span)
	}
	return spans
}

// names returns the attributes that identify the document. The URL is not among them: its path and
// query may hold secrets.
func names(t *timed) []*common.KeyValue {
	return []*common.KeyValue{text("urlserver.doc_id", t.DocID), text("server.address", t.Host),
		text("urlserver.group", t.Group)}
}

func outcome(t *timed) []*common.KeyValue {
	all := []*common.KeyValue{text("urlserver.outcome", t.Outcome),
		number("urlserver.attempts", int64(t.Attempts))}
	if t.Status > 0 {
		all = append(all, number("http.response.status_code", int64(t.Status)))
	}
	if t.Dropped > 0 {
		all = append(all, number("urlserver.steps_left_out", int64(t.Dropped)))
	}
	return all
}

// statusOf returns an error if the document was not fetched.
func statusOf(outcome string) *otlp.Status {
	switch outcome {
	case "timeout", "dns":
		return &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR, Message: outcome}
	}
	return nil
}

func unix(t *timed, d time.Duration) uint64 { return uint64(t.start.Add(d).UnixNano()) }

func newID() []byte {
	for {
		if n := rand.Uint64(); n != 0 { // 0 means no ID
			return binary.LittleEndian.AppendUint64(nil, n)
		}
	}
}

// text returns a string attribute. It replaces text that is not UTF-8, which protobuf refuses.
func text(key, value string) *common.KeyValue {
	value = strings.ToValidUTF8(value, "\uFFFD")
	return &common.KeyValue{Key: key,
		Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key,
		Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}
