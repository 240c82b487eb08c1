package sim

// shapeView is what the oracle knows of the turns of shapes at the sites of a crawl: of links that came
// when their site had some others already. It judges in scenarios in which no page links to its own
// site, so all shapes have the same cost.
type shapeView map[string]*shapesOfSite

type shapesOfSite struct {
	gone   int               // documents of the site that were handed out
	shapes map[string]*shape // by the path without its number
}

type shape struct {
	waiting int    // links that may be handed out
	since   int    // documents of the site that had gone when the first of them began to wait
	served  int    // the last document of the shape, by gone; 0: none
	turns   [2]int // the last two of its links, likewise
}

const shapedFrom = 4 // documents that a site has scheduled when its next link waits by its shape

// shapeOf returns the shape of a document.
func (v *crawlViews) shapeOf(n uint32) string {
	_, path := partsOfURL(v.urlOf(n))
	return path[:3]
}

func (v shapeView) at(host, name string) (*shapesOfSite, *shape) {
	site := v[host]
	if site == nil {
		site = &shapesOfSite{shapes: map[string]*shape{}}
		v[host] = site
	}
	if site.shapes[name] == nil {
		site.shapes[name] = &shape{}
	}
	return site, site.shapes[name]
}

// waits counts a link that waits now, or does no longer.
func (v shapeView) waits(host, name string, link bool, by int) {
	site, s := v.at(host, name)
	if !link {
		return
	}
	if s.waiting += by; s.waiting == 1 && by == 1 {
		s.since = site.gone
	}
}

// takesTurn checks that a document goes in the turn of its shape.
func (o *oracle) takesTurn(n uint32, host string) {
	c, link := o.crawls.of(n), o.crawls.docs[n].link
	name := o.crawls.shapeOf(n)
	site, s := c.shapes.at(host, name)
	c.shapes.waits(host, name, link, -1)
	site.gone++
	s.served = site.gone
	if !link || !o.crawls.sc.Shapes {
		return
	}
	before := s.turns[0]
	for other, w := range site.shapes {
		if w != s && w.waiting > 0 && w.since < before && w.served < before {
			o.wrong(RuleShapes, "document %d on %s goes, the third of %s since document %d of the site; "+
				"%d of %s wait", n, host, name, before, w.waiting, other)
		}
	}
	s.turns = [2]int{s.turns[1], site.gone}
}
