package bucket

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// How Amazon's signature version 4 names itself and writes a time, and how far the clocks may differ.
const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
	maxSkew    = 15 * time.Minute
)

// unknownKey is the code of S3's error for an access key that it does not know.
const unknownKey = "InvalidAccessKeyId"

// keys are an access key with its secret key, and the region of the bucket; "" means us-east-1.
type keys struct{ access, secret, region string }

// allow returns S3's error for a request whose signature is missing or wrong; nil for a good one.
func (k keys) allow(r *http.Request, now time.Time) *failure {
	region := cmp.Or(k.region, region)
	header := r.Header.Get("Authorization")
	if header == "" {
		return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	given, failed := parse(header)
	if failed != nil {
		return failed
	}
	at, err := time.Parse(timeFormat, r.Header.Get("X-Amz-Date"))
	hash := r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case err != nil || given.date != at.Format("20060102"):
		return fail(http.StatusForbidden, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
	case given.accessKey != k.access:
		return fail(http.StatusForbidden, unknownKey, "The AWS Access Key Id you provided does not exist in our records.")
	case given.region != region:
		failed := fail(http.StatusBadRequest, "AuthorizationHeaderMalformed",
			fmt.Sprintf("The authorization header is malformed; the region '%s' is wrong; expecting '%s'", given.region, region))
		failed.Region = region
		return failed
	case hash == "":
		return fail(http.StatusBadRequest, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	case !slices.Contains(given.headers, "host"):
		return fail(http.StatusForbidden, "AccessDenied", "There were headers present in the request which were not signed")
	case now.Sub(at).Abs() > maxSkew:
		return fail(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
	}
	if subtle.ConstantTimeCompare([]byte(given.signature), []byte(sign(r, given, at, hash, k.secret))) != 1 {
		return fail(http.StatusForbidden, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your key and signing method.")
	}
	return nil
}

// authorization is the header of that name.
type authorization struct {
	accessKey, date, region string
	headers                 []string // names of the headers that are signed, in their order
	signature               string
}

func parse(header string) (authorization, *failure) {
	malformed := fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header that you provided is not valid.")
	rest, is := strings.CutPrefix(header, algorithm+" ")
	if !is {
		return authorization{}, fail(http.StatusBadRequest, "InvalidArgument", "Unsupported Authorization Type")
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	scope := strings.Split(parts["Credential"], "/")
	if len(scope) != 5 || scope[3] != "s3" || scope[4] != "aws4_request" || parts["SignedHeaders"] == "" || parts["Signature"] == "" {
		return authorization{}, malformed
	}
	return authorization{
		accessKey: scope[0], date: scope[1], region: scope[2],
		headers: strings.Split(parts["SignedHeaders"], ";"), signature: parts["Signature"],
	}, nil
}

// sign returns the signature that a request with this authorization has to have. See "Authenticating Requests: Using the Authorization
// Header" in the reference of Amazon S3's API.
func sign(r *http.Request, given authorization, at time.Time, payloadHash, secretKey string) string {
	headers := strings.Builder{}
	for _, name := range given.headers {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	canonical := strings.Join([]string{
		r.Method, escape(r.URL.Path, false), canonicalQuery(r.URL.Query()), headers.String(), strings.Join(given.headers, ";"), payloadHash,
	}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	scope := strings.Join([]string{given.date, given.region, "s3", "aws4_request"}, "/")
	text := strings.Join([]string{algorithm, at.Format(timeFormat), scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + secretKey)
	for _, part := range []string{given.date, given.region, "s3", "aws4_request", text} {
		code := hmac.New(sha256.New, key)
		code.Write([]byte(part))
		key = code.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func canonicalQuery(query url.Values) string {
	var parts []string
	for name, values := range query {
		for _, value := range values {
			parts = append(parts, escape(name, true)+"="+escape(value, true))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

// escape encodes every byte except RFC 3986's unreserved characters, and slashes if they are to be kept.
func escape(text string, slashes bool) string {
	out := strings.Builder{}
	for _, b := range []byte(text) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("-._~", b) >= 0, b == '/' && !slashes:
			out.WriteByte(b)
		default:
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}
