package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Quantity is a size in bytes, written as a whole number and a binary unit: 512MiB, 8GiB, 1TiB.
// The unit is required: a bare number would be megabytes to Proxmox and bytes to Kubernetes.
type Quantity int64

// The units of a Quantity.
const (
	MiB Quantity = 1 << 20
	GiB Quantity = 1 << 30
	TiB Quantity = 1 << 40
)

var (
	quantityForm  = regexp.MustCompile(`^([0-9]+)(MiB|GiB|TiB)$`)
	quantityUnits = map[string]Quantity{"MiB": MiB, "GiB": GiB, "TiB": TiB}
)

// UnmarshalText reads the form described at Quantity.
func (q *Quantity) UnmarshalText(text []byte) error {
	match := quantityForm.FindSubmatch(text)
	if match == nil {
		return fmt.Errorf("not a size; write a whole number and a unit, such as 512MiB, 8GiB or 1TiB")
	}
	unit := quantityUnits[string(match[2])]
	number, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil || number > math.MaxInt64/int64(unit) {
		return fmt.Errorf("too large for a size; write a smaller one")
	}
	*q = Quantity(number) * unit
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// String is the size in the largest unit that keeps it whole, such as 8GiB.
func (q Quantity) String() string {
	switch {
	case q != 0 && q%TiB == 0:
		return fmt.Sprintf("%dTiB", q/TiB)
	case q != 0 && q%GiB == 0:
		return fmt.Sprintf("%dGiB", q/GiB)
	default:
		return fmt.Sprintf("%dMiB", q/MiB)
	}
}

// MiB is the size in mebibytes, the unit of a Proxmox VM's memory.
func (q Quantity) MiB() int { return int(q / MiB) }

// GiB is the size in gibibytes, rounded down; the unit of a Proxmox VM's disk.
func (q Quantity) GiB() int { return int(q / GiB) }
