package proxmox

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// network is a parsed netN value.
type network struct {
	model, mac, bridge, tag string
	rest                    map[string]string
}

// parseNIC reads both forms: model=virtio,macaddr=MAC and virtio=MAC.
func parseNIC(s string) network {
	p := parseProperty(s, "model")
	n := network{model: p.main, mac: p.keys["macaddr"], bridge: p.keys["bridge"], tag: p.keys["tag"], rest: p.keys}
	for _, model := range nicModels {
		if m, ok := p.keys[model]; ok {
			n.model, n.mac = model, m
			delete(p.keys, model)
		}
	}
	delete(p.keys, "macaddr")
	return n
}

// String is the form that Proxmox VE stores: the model with its address first.
func (n network) String() string {
	out := n.model + "=" + n.mac
	for _, k := range slices.Sorted(maps.Keys(n.rest)) {
		out += "," + k + "=" + n.rest[k]
	}
	return out
}

// normaliseNIC adds a random address of Proxmox's range to a network card without address.
func normaliseNIC(value string) string {
	n := parseNIC(value)
	if n.mac == "" {
		var b [3]byte
		_, _ = rand.Read(b[:]) // never fails
		n.mac = strings.ToUpper(fmt.Sprintf("bc:24:11:%02x:%02x:%02x", b[0], b[1], b[2]))
	}
	return n.String()
}
