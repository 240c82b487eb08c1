package crawlcontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// bounds has the members of a crawl's scope that a request to crawl sets, by Scrapy Cluster's
// names. A field that the request leaves out sets no member.
type bounds struct {
	scope.Scope
	depthGiven bool
}

// scopeFields are the names of a scope's members in a request.
var scopeFields = map[string]string{
	"domains": "allowed_domains", "allow": "allow_regex", "deny": "deny_regex",
	"deny_extensions": "deny_extensions", "max_depth": "maxdepth", "max_pages_domain": "domain_max_pages",
}

// boundsOf returns the bounds in a request's fields. An error names the field.
func boundsOf(v values) (b bounds, err error) {
	depth := int(v["maxdepth"].number)
	b.depthGiven = v["maxdepth"].given
	b.Scope, err = scope.Scope{
		Domains: v["allowed_domains"].list, Allow: v["allow_regex"].list, Deny: v["deny_regex"].list,
		DenyExtensions: v["deny_extensions"].list, MaxDepth: &depth,
		MaxPagesDomain: v["domain_max_pages"].number,
	}.Normal()
	if f, ok := errors.AsType[*scope.Fault](err); ok {
		return b, fmt.Errorf("crawl: %w", named(f))
	}
	return b, err
}

// named returns a fault with the member's name in a request.
func named(f *scope.Fault) *scope.Fault {
	return &scope.Fault{Member: cmp.Or(scopeFields[f.Member], f.Member), Index: f.Index, Why: f.Why}
}

// addTo returns the scope of a crawl after a request to crawl another URL of it. The request widens
// the scope: lists are joined, numbers become the larger ones. A list that the crawl does not have
// is not added, since the scope is wider without it. Denied patterns and extensions count for the
// whole crawl from then on.
func (b *bounds) addTo(now scope.Scope, known bool) scope.Scope {
	if !known {
		return b.Scope
	}
	widen := func(to *[]string, by []string) {
		if len(*to) > 0 {
			*to = union(*to, by)
		}
	}
	widen(&now.Domains, b.Domains)
	widen(&now.Allow, b.Allow)
	now.Deny = union(now.Deny, b.Deny)
	now.DenyExtensions = union(now.DenyExtensions, b.DenyExtensions)
	if b.depthGiven && now.MaxDepth != nil && *b.MaxDepth > *now.MaxDepth {
		now.MaxDepth = b.MaxDepth
	}
	if now.MaxPagesDomain > 0 {
		now.MaxPagesDomain = max(now.MaxPagesDomain, b.MaxPagesDomain)
	}
	return now
}

// union returns the members of two lists, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// scopeStore is a store whose crawls have scopes.
type scopeStore interface {
	Widen(ctx context.Context, id string, add func(scope.Scope, bool) (scope.Scope, error)) error
	StopCrawlID(ctx context.Context, id string) error
}

// Widen implements [Crawls.Widen].
func (k *Controller) Widen(
	ctx context.Context, crawl string, add func(scope.Scope, bool) (scope.Scope, error),
) error {
	if s, ok := k.store.(scopeStore); ok {
		return s.Widen(ctx, crawl, add)
	}
	return nil
}

// maxNamesakes is how many crawls with one crawl ID StopID stops.
const maxNamesakes = 10_000

// StopID stops all crawls with a crawl ID, of whatever application and spider, and documents with
// that crawl ID that belong to no application.
func (k *Controller) StopID(ctx context.Context, crawl string) error {
	if s, ok := k.store.(scopeStore); ok {
		if err := s.StopCrawlID(ctx, crawl); err != nil {
			return err
		}
	}
	all, _, err := k.store.ListCrawls(ctx, crawl, maxNamesakes)
	for _, c := range all {
		if c.Crawl != crawl || c.App == "" || c.Stopped || err != nil {
			continue
		}
		if _, err = k.end(ctx, c.CrawlID, docindex.Stopped); err == nil {
			k.AcknowledgeStop(ctx, c.CrawlID)
		}
	}
	return err
}
