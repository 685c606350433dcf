package crds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	fetchAttempts = 6                // in half a minute, for a manifest whose server does not answer, or answers 5xx or 429
	fetchPause    = time.Second      // before the second attempt; doubled each time
	fetchTimeout  = 60 * time.Second // for one attempt
	largest       = 64 << 20         // bytes of a manifest; the largest known one has 5 MiB
)

// newClient makes a client that refuses redirects away from https. Proxies and certificate authorities are those of the environment.
func newClient() *http.Client {
	return &http.Client{Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" {
			return fmt.Errorf("is redirected to %s, which is not https", r.URL)
		}
		if len(via) >= 10 {
			return errors.New("is redirected ten times")
		}
		return nil
	}}
}

// temporary is an error after which another attempt may succeed.
type temporary struct{ error }

// fetch returns a source's manifest and its checksum.
func (r *run) fetch(ctx context.Context, source Source) ([]byte, string, error) {
	pause := r.pause
	for attempt := 1; ; attempt++ {
		content, err := r.get(ctx, source.URL)
		if err == nil {
			sum := sha256.Sum256(content)
			got := hex.EncodeToString(sum[:])
			if source.SHA256 != "" && source.SHA256 != got {
				return nil, "", fmt.Errorf("%s: has sha256 %s, but %s is pinned; compare the two manifests, "+
					"then set the new checksum or go back to the old URL",
					source.URL, got, source.SHA256)
			}
			return content, got, nil
		}
		var again temporary
		if !errors.As(err, &again) || attempt == fetchAttempts {
			return nil, "", err
		}
		r.Say("fetches %s again: %v", source.Name, err)
		select {
		case <-ctx.Done():
			return nil, "", fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (r *run) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return nil, temporary{err}
	}
	defer func() { _ = response.Body.Close() }()
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests || status >= 500:
		return nil, temporary{fmt.Errorf("%s: answers %s", url, response.Status)}
	case status == http.StatusNotFound:
		return nil, fmt.Errorf("%s: answers %s; is there such a release, and does it have this file? Set another version or url", url,
			response.Status)
	case status != http.StatusOK:
		return nil, fmt.Errorf("%s: answers %s; the manifest must be public", url, response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, largest+1))
	if err != nil {
		return nil, temporary{fmt.Errorf("%s: %w", url, err)}
	}
	if len(content) > largest {
		return nil, fmt.Errorf("%s: is larger than %d MiB, which no manifest of CRDs is", url, largest>>20)
	}
	return content, nil
}
