package scope

import (
	"bytes"
	"strings"

	"urlserver/internal/weburl"
)

// Rule is the rule of a scope that refuses a URL.
type Rule uint8

// The rules, in the order in which they are looked at.
const (
	InScope     Rule = iota // none refuses it
	Until                   // the crawl's time is over
	Depth                   // too many links away from a seed
	Domain                  // in none of the domains, hosts and SURT prefixes
	Extension               // its path has a denied extension
	Deny                    // a denied pattern matches it
	Allow                   // no allowed pattern matches it
	Pages                   // the crawl has as many documents as it may have
	PagesDomain             // the registered domain has as many documents in the crawl as it may have

	RuleCount = int(PagesDomain) + 1 // how many there are
)

var ruleWords = [RuleCount]string{
	InScope: "in_scope", Until: "until", Depth: "depth", Domain: "domain", Extension: "extension", Deny: "deny",
	Allow: "allow", Pages: "pages", PagesDomain: "pages_domain",
}

// String returns the contract's word for r.
func (r Rule) String() string {
	if int(r) < RuleCount {
		return ruleWords[r]
	}
	return "unknown"
}

// Rules decides what is in a scope. It does not change and is safe for concurrent use.
type Rules struct {
	Scope Scope // in normal form

	domains, hosts map[string]struct{}
	surts          prefixes
	anywhere       bool
	allow, deny    patterns
	endings        [][]byte // denied extensions, with dot
	maxDepth       int      // -1: any
	until          int64    // seconds since 1970; 0: no end
}

// Compile returns the rules of a scope. The error is a *[Fault].
func Compile(s Scope) (*Rules, error) {
	s, err := s.Normal()
	if err != nil {
		return nil, err
	}
	return compile(&s)
}

// compile compiles a scope that is in normal form.
func compile(s *Scope) (r *Rules, err error) {
	r = &Rules{
		Scope: *s, domains: setOf(s.Domains), hosts: setOf(s.Hosts), surts: newPrefixes(s.SURTs), maxDepth: -1,
		anywhere: len(s.Domains)+len(s.Hosts)+len(s.SURTs) == 0,
	}
	left := maxProgram
	if r.allow, err = compilePatterns("allow", s.Allow, &left); err != nil {
		return nil, err
	}
	if r.deny, err = compilePatterns("deny", s.Deny, &left); err != nil {
		return nil, err
	}
	for _, ending := range s.DenyExtensions {
		r.endings = append(r.endings, []byte("."+ending))
	}
	if s.MaxDepth != nil {
		r.maxDepth = *s.MaxDepth
	}
	if !s.Until.IsZero() {
		r.until = max(1, s.Until.Unix())
	}
	return r, nil
}

func setOf(list []string) map[string]struct{} {
	set := make(map[string]struct{}, len(list))
	for _, one := range list {
		set[one] = struct{}{}
	}
	return set
}

// Check returns the rule that refuses a document, or InScope. url is in serialised form or, as URL
// Frontier clients put it, any text; host is where requests for it go. now is in seconds since
// 1970. Pages and PagesDomain are not Check's: they depend on what the index has.
func (r *Rules) Check(url, host []byte, depth int, now int64) Rule {
	switch {
	case r.until != 0 && now >= r.until:
		return Until
	case r.maxDepth >= 0 && depth > r.maxDepth:
		return Depth
	case !r.anywhere && !r.isNear(url, host):
		return Domain
	case len(r.endings) > 0 && r.endsDenied(url):
		return Extension
	case r.deny.match(url):
		return Deny
	case len(r.allow.list) > 0 && !r.allow.match(url):
		return Allow
	}
	return InScope
}

// Over reports whether the time of the crawl is over.
func (r *Rules) Over(now int64) bool { return r.until != 0 && now >= r.until }

// isNear reports whether a URL is in one of domains, hosts and SURT prefixes.
func (r *Rules) isNear(url, host []byte) bool {
	host = bytes.TrimSuffix(host, []byte{'.'})
	if _, ok := r.hosts[string(host)]; ok {
		return true
	}
	for rest := host; len(r.domains) > 0; {
		if _, ok := r.domains[string(rest)]; ok {
			return true
		}
		i := bytes.IndexByte(rest, '.')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
	}
	if len(r.surts) == 0 {
		return false
	}
	u, err := weburl.Parse(url)
	if err != nil {
		return false
	}
	var room [512]byte
	return r.surts.has(appendSURT(room[:0], u))
}

// endsDenied reports whether the path of a URL ends with a denied extension.
func (r *Rules) endsDenied(url []byte) bool {
	path := url
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	if i := bytes.Index(path, []byte("://")); i >= 0 {
		path = path[i+len("://"):]
	}
	i := bytes.LastIndexByte(path, '/')
	if i < 0 {
		return false // a host alone
	}
	name := path[i:]
	if bytes.IndexByte(name, '.') < 0 {
		return false
	}
	for _, ending := range r.endings {
		if n := len(name) - len(ending); n >= 0 && strings.EqualFold(string(name[n:]), string(ending)) {
			return true
		}
	}
	return false
}
