package syntax

import (
	"math"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLine_NamesTheCharacter(t *testing.T) {
	require.Nil(t, Line("some text"))
	for value, want := range map[string]string{
		"":             "is empty; give it a value, or remove the key",
		"a\nb":         "has a line break in it; write it on one line",
		" a":           "has white space around it; remove it", //nolint:gocritic // which is what is tested
		"p\u0430ss":    "has U+0430, which is not ASCII; write it in ASCII",
		"a\u2013b":     "has U+2013, which is not ASCII; write it in ASCII",
		"a\u00adb":     "has the invisible character U+00AD in it; remove it",
		"a\u0007b":     "has the control character U+0007 in it; remove it",
		"a\u00a0b":     "has U+00A0, which is not the space it looks like; write an ordinary space, or none",
		"\u4e16\u754c": "has U+4E16, which is not ASCII; write it in ASCII",
		"\xc3\x28":     "is not UTF-8; write it anew in an editor that saves UTF-8",
	} {
		fault := Line(value)
		require.NotNil(t, fault, "%q", value)
		assert.Equal(t, want, fault.Problem+"; "+fault.Remedy, "%q", value)
	}
}

// The form is what Git itself says of refs/heads/NAME, but for names that stand for something else.
func TestBranch_IsWhatGitAccepts(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	branch := lookup(t, "git-branch")
	for _, value := range append(append([]string{"a@", "@a", "a{", "@/x", "x/@", "a,b", "a;b", "a|b", "a!b", "é", "a.lockx", ".lock",
		"lock/.lock", "a/.", "x./y"},
		cases["git-branch"].valid...), cases["git-branch"].wrong...) {
		accepted := exec.Command(git, "check-ref-format", "refs/heads/"+value).Run() == nil
		own := value == "HEAD" || value == "@" || strings.HasPrefix(value, "-") || strings.HasPrefix(value, "refs/") || lineFault(value,
			true) != nil
		assert.Equal(t, accepted && !own, branch.Check(value) == nil, "%q", value)
	}
}

func TestUnicast_IsWhatAHostCanHave(t *testing.T) {
	for _, good := range []string{"10.25.11.10", "1.0.0.0", "223.255.255.255", "126.255.255.255", "128.0.0.0", "169.253.0.1",
		"100.64.0.1", "192.0.2.1", "198.18.0.1", "fd25::1", "2001:db8::1", "101::1"} {
		assert.Nil(t, unicastFault(netip.MustParseAddr(good)), good)
	}
	for _, bad := range []string{"0.0.0.0", "0.255.255.255", "127.0.0.1", "127.255.255.255", "169.254.0.1", "224.0.0.0",
		"239.255.255.255", "240.0.0.0", "255.255.255.255", "::", "::1", "::2",
		"fe80::1", "febf::1", "fec0::1", "ff02::1", "100::1", "fd25::1%eth0"} {
		require.NotNil(t, unicastFault(netip.MustParseAddr(bad)), bad)
	}
}

func TestNetwork_HasNoHostBits(t *testing.T) {
	require.Nil(t, networkFault(netip.MustParsePrefix("10.25.11.0/24")))
	require.Nil(t, networkFault(netip.MustParsePrefix("fd25:11::/64")))
	require.Equal(t, &Fault{"has host bits set", "did you mean 10.25.11.0/24?"}, networkFault(netip.MustParsePrefix("10.25.11.7/24")))
	for _, bad := range []string{"0.0.0.0/0", "127.0.0.0/8", "127.0.0.1/8", "169.254.3.0/24", "255.255.255.255/32", "::/0", "::1/128",
		"fe80::/10", "ff02::/16"} {
		fault := networkFault(netip.MustParsePrefix(bad))
		require.NotNil(t, fault, bad)
		require.NotContains(t, fault.Remedy, "did you mean", bad)
	}
}

func TestFamilies_AreTold(t *testing.T) {
	four, six, mapped := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd25::1"), netip.MustParseAddr("::ffff:10.0.0.1")
	require.Nil(t, ipv4Fault(four))
	require.Nil(t, ipv6Fault(six))
	require.NotNil(t, ipv4Fault(six))
	require.NotNil(t, ipv6Fault(four))
	require.NotNil(t, ipv6Fault(mapped))
	require.NotNil(t, ipv4Fault(mapped))
	require.NotNil(t, ipv4Fault(netip.Addr{}))
	require.NotNil(t, ipv6Fault(netip.Addr{}))
}

func TestBytes_AreWhatAQuantityStandsFor(t *testing.T) {
	for value, want := range map[string]int64{"1MiB": 1 << 20, "8GiB": 8 << 30, "128TiB": 128 << 40, "0GiB": 0, "8": 0, "08GiB": 0,
		"": 0, "999999999TiB": math.MaxInt64, "9999999999MiB": 0} {
		assert.Equal(t, want, Bytes(value), value)
	}
}

func TestNormalMAC_IsUpperCase(t *testing.T) {
	require.Equal(t, "BC:24:11:00:01:0B", NormalMAC("bc:24:11:00:01:0b"))
}

func TestDistance_CountsLetters(t *testing.T) {
	for _, one := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "ba", 1}, {"agnet", "agent", 1}, {"kitten", "sitting", 3}} {
		assert.Equal(t, one.want, distance(one.a, one.b), "%s %s", one.a, one.b)
		assert.Equal(t, one.want, distance(one.b, one.a), "%s %s", one.b, one.a)
	}
}
