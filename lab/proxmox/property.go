package proxmox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// property is a Proxmox VE property string such as "local-lvm:vm-1-disk-0,size=20G": a value without a key, and keys
// with values.
type property struct {
	main string
	keys map[string]string
}

// parseProperty splits a property string. The value without a key may also be written as mainKey=value.
func parseProperty(s, mainKey string) property {
	p := property{keys: map[string]string{}}
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case key == "":
		case !ok:
			p.main = key
		case key == mainKey:
			p.main = value
		default:
			p.keys[key] = value
		}
	}
	return p
}

// String returns the main value first and the keys in order, as Proxmox VE prints a property string.
func (p property) String() string {
	parts := make([]string, 0, len(p.keys)+1)
	for k, v := range p.keys {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	if p.main != "" {
		parts = slices.Insert(parts, 0, p.main)
	}
	return strings.Join(parts, ",")
}

// formatSize prints bytes in the largest unit that divides them, as Proxmox VE does.
func formatSize(bytes int64) string {
	units := []string{"", "K", "M", "G", "T"}
	i := 0
	for i < len(units)-1 && bytes != 0 && bytes%1024 == 0 {
		bytes /= 1024
		i++
	}
	return strconv.FormatInt(bytes, 10) + units[i]
}

// parseSize reads the output of formatSize, and plain bytes.
func parseSize(s string) (int64, error) {
	shift := 0
	if s != "" {
		if i := strings.IndexByte("KMGT", s[len(s)-1]); i >= 0 {
			shift, s = 10*(i+1), s[:len(s)-1]
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no size", s)
	}
	return int64(n * float64(int64(1)<<shift)), nil
}

// split splits a list as Proxmox VE does: at comma, semicolon or blank.
func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",; \t\n", r) })
}
