package main

import (
	"maps"
	"testing"
)

func TestSettings_AreReadAsRedisReadsThem(t *testing.T) {
	// The arguments of Argo CD's chart: a password stands in the same argument.
	got, err := settings([]string{"--save", "", "--appendonly", "no", "--requirepass s3cret", "--port", "6380"})
	want := map[string]string{"save": "", "appendonly": "no", "requirepass": "s3cret", "port": "6380"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := settings([]string{"/etc/redis.conf"}); err == nil {
		t.Error("a configuration file is accepted")
	}
}

func TestText_IsWhatRedisCLIPrints(t *testing.T) {
	for answer, want := range map[string]string{"+PONG\r\n": "PONG", "$3\r\nbar\r\n": "bar", ":3\r\n": "3", "-NOAUTH no\r\n": "NOAUTH no"} {
		if got := text(answer); got != want {
			t.Errorf("%q: got %q, want %q", answer, got, want)
		}
	}
}
