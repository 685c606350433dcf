package workload

import (
	"io"
	"net"
	"time"
)

// Forward connects to a TCP address and copies in both directions until that connection ends. The caller closes in.
func Forward(in net.Conn, to string) {
	out, err := net.DialTimeout("tcp", to, 3*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(in, out)
}
