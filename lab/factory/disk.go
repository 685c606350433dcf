package factory

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// convert puts the content of a raw image into the form that a file's name asks for.
func (p profile) convert(raw []byte) ([]byte, error) {
	if p.diskFormat == "qcow2" {
		raw = qcow2(raw)
	}
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch p.compression {
	case "":
		return raw, nil
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".xz":
		w, err = xz.NewWriter(&out)
	case ".zst":
		w, err = zstd.NewWriter(&out)
	default:
		err = fmt.Errorf("image: no compression %q", p.compression)
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	err = w.Close() // writes the rest
	return out.Bytes(), err
}

// Layout of a qcow2 image, in clusters. The public factory uses clusters of 8 KiB, too.
const (
	clusterBits   = 13
	cluster       = 1 << clusterBits
	refcountTable = 1 // after the header
	refcountBlock = 2
	l1Table       = 3
	l2Table       = 4
	firstData     = 5
)

// qcow2 is an uncompressed image in QEMU's format, version 3, with the content of a raw image of at most 8 MiB.
func qcow2(raw []byte) []byte {
	data := (len(raw) + cluster - 1) / cluster
	image := make([]byte, (firstData+data)*cluster)
	order := binary.BigEndian
	copy(image, "QFI\xfb")
	order.PutUint32(image[4:], 3)                      // version
	order.PutUint32(image[20:], clusterBits)           // cluster_bits
	order.PutUint64(image[24:], uint64(len(raw)))      // size
	order.PutUint32(image[36:], 1)                     // l1_size
	order.PutUint64(image[40:], l1Table*cluster)       // l1_table_offset
	order.PutUint64(image[48:], refcountTable*cluster) // refcount_table_offset
	order.PutUint32(image[56:], 1)                     // refcount_table_clusters
	order.PutUint32(image[96:], 4)                     // refcount_order: 16 bits
	order.PutUint32(image[100:], 104)                  // header_length
	order.PutUint64(image[refcountTable*cluster:], refcountBlock*cluster)
	for i := range firstData + data {
		order.PutUint16(image[refcountBlock*cluster+2*i:], 1)
	}
	const used = 1 << 63 // the cluster has exactly one reference
	order.PutUint64(image[l1Table*cluster:], used|l2Table*cluster)
	for i := range data {
		order.PutUint64(image[l2Table*cluster+8*i:], used|uint64((firstData+i)*cluster))
	}
	copy(image[firstData*cluster:], raw)
	return image
}
