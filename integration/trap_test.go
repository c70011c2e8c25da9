package integration

import (
	"errors"
	"sync/atomic"
	"testing"
)

// tally counts the parts that match, whatever becomes of them.
type tally struct {
	match func(part) bool
	n     atomic.Int64
}

func (p *proxy) count(match func(part) bool) *tally {
	counted := &tally{match: match}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tallies = append(p.tallies, counted)
	return counted
}

// trap waits for parts, and holds each that it catches until it is told what becomes of them.
type trap struct {
	proxy  *proxy
	match  func(part) bool
	caught chan struct{} // closed when the first is caught
	fate   chan struct{} // closed when the fate is known
	once   bool          // catches one and no more
	cutoff bool          // what the fate is; set before fate is closed
}

// hold sets a trap: parts that match, of any connection, stay in the proxy until release or cut.
func (p *proxy) hold(match func(part) bool) *trap {
	return p.set(&trap{match: match, fate: make(chan struct{})})
}

// cutOne sets a trap whose fate is known: the first part that matches does not arrive, and its connection is closed.
func (p *proxy) cutOne(match func(part) bool) *trap {
	known := make(chan struct{})
	close(known)
	return p.set(&trap{match: match, fate: known, once: true, cutoff: true})
}

func (p *proxy) set(tr *trap) *trap {
	tr.proxy, tr.caught = p, make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, tr)
	return tr
}

// await holds a part that a trap catches, and reports whether it may go on.
func (p *proxy) await(one part) bool {
	tr := p.catch(one)
	if tr == nil {
		return true
	}
	select {
	case <-tr.fate:
		return !tr.cutoff
	case <-p.closing:
		return false
	}
}

func (p *proxy) catch(one part) *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.tallies {
		if c.match(one) {
			c.n.Add(1)
		}
	}
	for i, tr := range p.traps {
		if !tr.match(one) {
			continue
		}
		if tr.once {
			p.traps = append(p.traps[:i:i], p.traps[i+1:]...)
		}
		select {
		case <-tr.caught:
		default:
			close(tr.caught)
		}
		return tr
	}
	return nil
}

// wait waits until the trap has caught something.
func (tr *trap) wait(t *testing.T) {
	t.Helper()
	eventually(t, patience, func() error {
		select {
		case <-tr.caught:
			return nil
		default:
			return errors.New("the trap has caught nothing")
		}
	})
}

// release takes the trap away and lets go on what it holds.
func (tr *trap) release() { tr.decide(false) }

// cut takes the trap away, throws away what it holds and closes those connections.
func (tr *trap) cut() { tr.decide(true) }

func (tr *trap) decide(cutoff bool) {
	p := tr.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.traps {
		if p.traps[i] == tr {
			p.traps = append(p.traps[:i:i], p.traps[i+1:]...)
			break
		}
	}
	tr.cutoff = cutoff
	close(tr.fate)
}
