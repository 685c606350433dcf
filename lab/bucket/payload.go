package bucket

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// Values of the header X-Amz-Content-Sha256 that are no checksum.
const (
	unsignedPayload = "UNSIGNED-PAYLOAD"
	trailer         = "STREAMING-UNSIGNED-PAYLOAD-TRAILER" // in chunks, with a checksum after the last one
)

// checksumHeader begins the names of the headers with checksums. The lab knows only the clients' default algorithm.
const checksumHeader = "X-Amz-Checksum-"

// payload reads the body of an allowed request, and compares it with the request's checksums.
func payload(r *http.Request) ([]byte, *failure) {
	content, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength >= 0 && int64(len(content)) != r.ContentLength {
		return nil, fail(http.StatusBadRequest, "IncompleteBody",
			"You did not provide the number of bytes specified by the Content-Length HTTP header")
	}
	checksums := r.Header.Clone()
	switch hash := r.Header.Get("X-Amz-Content-Sha256"); {
	case hash == unsignedPayload:
	case hash == trailer:
		var failed *failure
		if content, failed = dechunked(content, r.Header.Get("X-Amz-Decoded-Content-Length"), checksums); failed != nil {
			return nil, failed
		}
		if name := r.Header.Get("X-Amz-Trailer"); checksums.Get(name) == "" {
			return nil, fail(http.StatusBadRequest, "MalformedTrailerError",
				"The request contained trailing data that was not well-formed or did not conform to our published schema.")
		}
	case strings.HasPrefix(hash, "STREAMING-"):
		return nil, fail(http.StatusNotImplemented, "NotImplemented", "The lab does not know "+hash+".")
	default:
		if sum := sha256.Sum256(content); hash != hex.EncodeToString(sum[:]) {
			return nil, fail(http.StatusBadRequest, "XAmzContentSHA256Mismatch",
				"The provided 'x-amz-content-sha256' header does not match what was computed.")
		}
	}
	for name := range checksums {
		switch name {
		case checksumHeader + "Crc32":
			sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(content))
			if checksums.Get(name) != base64.StdEncoding.EncodeToString(sum) {
				return nil, fail(http.StatusBadRequest, "BadDigest", "The CRC32 you specified did not match the calculated checksum.")
			}
		case checksumHeader + "Algorithm", checksumHeader + "Type":
		default:
			if strings.HasPrefix(name, checksumHeader) {
				return nil, fail(http.StatusNotImplemented, "NotImplemented", "The lab does not know "+name+".")
			}
		}
	}
	return content, nil
}

// dechunked reads a body in the encoding aws-chunked, without signatures. It adds the headers after the last chunk to headers.
func dechunked(body []byte, size string, headers http.Header) ([]byte, *failure) {
	malformed := fail(http.StatusBadRequest, "IncompleteBody", "The request body terminated unexpectedly")
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(body)))
	var content []byte
	for {
		line, err := r.ReadLine()
		length, parseErr := strconv.ParseUint(line, 16, 31)
		if err != nil || parseErr != nil {
			return nil, malformed
		}
		if length == 0 {
			break
		}
		chunk := make([]byte, length+2) // with the end of its line
		if _, err := io.ReadFull(r.R, chunk); err != nil || !bytes.HasSuffix(chunk, []byte("\r\n")) {
			return nil, malformed
		}
		content = append(content, chunk[:length]...)
	}
	after, err := r.ReadMIMEHeader()
	if err != nil || size != strconv.Itoa(len(content)) {
		return nil, malformed
	}
	for name, values := range after {
		headers[name] = values
	}
	return content, nil
}
