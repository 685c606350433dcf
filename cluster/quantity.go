package cluster

import "github.com/slipway-platform/slipway/cluster/syntax"

// Quantity is a size in bytes, written as a whole number and a binary unit: 512MiB, 8GiB, 1TiB. The unit is required: a
// number alone would be megabytes in Proxmox and bytes in Kubernetes.
type Quantity int64

// The units of a Quantity.
const (
	MiB = Quantity(syntax.MiB)
	GiB = Quantity(syntax.GiB)
	TiB = Quantity(syntax.TiB)
)

// UnmarshalText reads the form described at Quantity. Its error is a problem and a remedy, separated by a semicolon.
func (q *Quantity) UnmarshalText(text []byte) error {
	if err := wellFormed("quantity", text); err != nil {
		return err
	}
	*q = Quantity(syntax.Bytes(string(text)))
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// String returns the size in the largest unit in which it is a whole number, such as 8GiB.
func (q Quantity) String() string { return syntax.SizeText(int64(q)) }

// MiB returns the size in mebibytes, the unit of a Proxmox VM's memory.
func (q Quantity) MiB() int { return int(q / MiB) }

// GiB returns the size in gibibytes, rounded down; the unit of a Proxmox VM's disk.
func (q Quantity) GiB() int { return int(q / GiB) }
