package configs

// Shown is a setting for people to look at.
type Shown struct {
	Name    string
	Value   string // as TOML, "***" for a token
	Default bool   // it is as it would be without a file
	Environ bool   // a variable of the environment has set it
	Live    bool   // a running daemon can take another value over
}

// Shown is every setting, in the order of the sample.
func (c Config) Shown() (all []Shown) {
	usual := Default()
	for _, s := range settings() {
		all = append(all, Shown{Name: s.name, Value: s.shown(&c), Default: s.text(&c) == s.text(&usual),
			Environ: c.FromEnviron(s.name), Live: s.live})
	}
	return all
}

// shown is text without secrets.
func (s *setting) shown(c *Config) string {
	if s.secret && s.text(c) != `""` {
		return tomlString(hidden)
	}
	return s.text(c)
}
