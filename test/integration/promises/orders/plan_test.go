package orders_test

// plan returns the scenarios of a database, by mode and by ruleset. A short plan has, of each ruleset, the first
// scenario in one mode, with the modes in turn, and the scenarios in which two steps meet for the first time. Each has
// at most fewest orders.
func (d *database) plan(short bool) map[string]map[string][]*scenario {
	all := make(map[string]map[string][]*scenario)
	met := make(map[[2]string]bool)
	for i, r := range rulesets(d.Dialect) {
		scenarios := d.scenarios(r)
		for j, m := range d.modes {
			if all[m.name] == nil {
				all[m.name] = make(map[string][]*scenario)
			}
			chosen := scenarios
			if short {
				chosen = nil
				for k, sc := range scenarios {
					if k == 0 && (i+j)%len(d.modes) == 0 || sc.meets(met) {
						some := *sc
						some.most = fewest
						chosen = append(chosen, &some)
						sc.meet(met)
					}
				}
			}
			all[m.name][r.String()] = chosen
		}
	}
	return all
}

// fewest is how many orders of a scenario a short run has.
const fewest = 15

// pairs calls f with each two steps of different sessions, until f returns false.
func (s *scenario) pairs(f func(pair [2]string) bool) {
	for i, script := range s.scripts {
		for _, other := range s.scripts[i+1:] {
			for _, a := range script {
				for _, b := range other {
					if !f([2]string{a, b}) {
						return
					}
				}
			}
		}
	}
}

// meets reports whether two steps of different sessions meet in the scenario that haven't met in others.
func (s *scenario) meets(met map[[2]string]bool) (fresh bool) {
	s.pairs(func(pair [2]string) bool {
		fresh = !met[pair]
		return !fresh
	})
	return fresh
}

// meet notes which steps have met.
func (s *scenario) meet(met map[[2]string]bool) {
	s.pairs(func(pair [2]string) bool {
		met[pair] = true
		return true
	})
}

// count returns the number of the scenarios' orders.
func count(scenarios []*scenario) (n int) {
	for _, sc := range scenarios {
		n += len(sc.orders())
	}
	return n
}
