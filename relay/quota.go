package relay

import "slices"

// lane is a routing key and where it goes.
type lane struct {
	key  string
	dest *destination
	busy bool // its last claim came back full
}

// quotas divides the free places of each destination among its lanes: one place for each, the rest for those that were
// busy the last time, or for all if none was.
func (c *claimer) quotas(lapses int) []Quota {
	var quotas []Quota
	for _, d := range c.destinations {
		lanes, busy, all := c.lanesOf(d)
		if len(lanes) == 0 || all <= 0 {
			continue
		}
		all = min(all, maxBatch)
		if len(lanes) > all { // more lanes than places: they take turns
			lanes, busy, c.crowded = c.inTurn(turn{d, lapses}, lanes, all), 0, true
		}
		sharers := busy
		if sharers == 0 {
			sharers = len(lanes)
		}
		share := (all - len(lanes)) / max(1, sharers)
		for _, l := range lanes {
			_, room := d.room(l.key)
			limit := 1
			if busy == 0 || l.busy {
				limit += share
			}
			if limit = min(limit, room); limit > 0 { // a breaker may have opened meanwhile
				quotas = append(quotas, Quota{RoutingKey: l.key, Lapses: lapses, Limit: limit})
			}
		}
	}
	return quotas
}

// turn is what lanes take turns for.
type turn struct {
	dest   *destination
	lapses int
}

// inTurn returns the n lanes that come after the one that was asked last, in a ring.
func (c *claimer) inTurn(t turn, lanes []*lane, n int) []*lane {
	first := max(0, slices.IndexFunc(lanes, func(l *lane) bool { return l.key > c.asked[t] }))
	lanes = slices.Concat(lanes[first:], lanes[:first])[:n]
	c.asked[t] = lanes[n-1].key
	return lanes
}

// lanesOf returns the lanes of a destination that have room, in order of their keys, how many of them were busy, and the
// destination's room in all.
func (c *claimer) lanesOf(d *destination) (lanes []*lane, busy, all int) {
	for _, key := range c.keysOf(d) {
		var room int
		if all, room = d.room(key); room > 0 {
			lanes = append(lanes, c.lanes[key])
			busy += btoi(c.lanes[key].busy)
		}
	}
	return lanes, busy, all
}

// mark remembers which lanes are busy with messages that never lapsed, and tells whether any claim came back full.
func (c *claimer) mark(quotas []Quota, byKey map[string]int) (full bool) {
	for _, q := range quotas {
		if q.ID == "" && q.Lapses == 0 {
			l := c.lanes[q.RoutingKey]
			l.busy = byKey[q.RoutingKey] >= q.Limit
			full = full || l.busy
		}
	}
	return full
}
