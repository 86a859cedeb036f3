// franz-go in the roles `transact` and `pipe`, with the options of `python -m tests.faults.clients`,
// and `--count`: so many clients in this one process.
//
// The next transaction begins as soon as the last one has ended, without a pause. Every step is
// written down as Python's Recorder does it. SIGTERM: finish the transaction, and end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	abortOneIn = 8
	recordsMax = 20
	callMax    = 60 * time.Second
)

var padding = ":" + strings.Repeat(".", 90)

type options struct {
	role, process, bootstrap, topic, output, history, group, seed string
	count, partitions, transactionMs, deliveryMs                  int
	base                                                          int64
}

func parsed() options {
	var o options
	flag.StringVar(&o.role, "role", "", "transact or pipe")
	flag.StringVar(&o.process, "process", "", "name of this process in the history")
	flag.StringVar(&o.bootstrap, "bootstrap", "", "")
	flag.StringVar(&o.topic, "topic", "", "")
	flag.StringVar(&o.output, "output", "", "topic that a pipe writes to")
	flag.StringVar(&o.history, "history", "", "")
	flag.StringVar(&o.group, "group", "", "")
	flag.StringVar(&o.seed, "seed", "", "")
	flag.IntVar(&o.count, "count", 1, "clients in this process")
	flag.IntVar(&o.partitions, "partitions", 1, "")
	flag.IntVar(&o.transactionMs, "transaction-ms", 20_000, "")
	flag.IntVar(&o.deliveryMs, "delivery-ms", 60_000, "")
	flag.Int64Var(&o.base, "base", 0, "values begin above this number")
	for _, unused := range []string{"rate", "acks", "isolation"} {
		flag.String(unused, "", "means nothing to these roles")
	}
	flag.Parse()
	return o
}

// A client is one producer after the other under one transactional id.
type client struct {
	options
	process      string
	lines        *history
	chance       *rand.Rand
	value        int64
	restarts     int
	transactions int
	stretch      atomic.Int64 // The library's own goroutine tells of assignments.
	stopping     context.Context
}

func main() {
	o := parsed()
	lines, err := openHistory(o.history)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	stopping, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var running sync.WaitGroup
	for number := 1; number <= o.count; number++ {
		process := fmt.Sprintf("%s/%d", o.process, number)
		seed := fnv.New64()
		seed.Write([]byte(o.seed + process))
		c := &client{
			options:  o,
			process:  process,
			lines:    lines,
			chance:   rand.New(rand.NewSource(int64(seed.Sum64()))),
			value:    o.base + int64(number)*10_000_000,
			stopping: stopping,
		}
		running.Add(1)
		go func() {
			defer running.Done()
			c.run()
		}()
	}
	running.Wait()
}

func (c *client) run() {
	work := c.transact
	if c.role == "pipe" {
		work = c.pipe
	}
	for c.stopping.Err() == nil {
		c.restarts++
		if err := work(); err != nil {
			fmt.Printf("%s begins anew: %v\n", c.process, err)
		}
	}
}

func (c *client) settings(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.bootstrap, ",")...),
		kgo.ClientID(c.process),
		kgo.TransactionalID(c.process),
		kgo.TransactionTimeout(time.Duration(c.transactionMs) * time.Millisecond),
		kgo.RecordDeliveryTimeout(time.Duration(c.deliveryMs) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, more...)
}

// Transactions over any partitions of both topics; an error: this producer is of no use.
func (c *client) transact() error {
	producer, err := kgo.NewClient(c.settings()...)
	if err != nil {
		return err
	}
	defer producer.Close()
	for c.stopping.Err() == nil {
		name := c.next()
		if err := producer.BeginTransaction(); err != nil {
			c.trouble("begin of "+name, err)
			return err
		}
		sent := c.newSending(name)
		for left := 1 + c.chance.Intn(8); left > 0; left-- {
			topic := []string{c.topic, c.output}[c.chance.Intn(2)]
			sent.send(producer.Produce, topic, int32(c.chance.Intn(c.partitions)))
		}
		if err := c.end(producer, sent, c.isToCommit()); err != nil {
			return err
		}
	}
	return nil
}

// Commit what was stored, or abort, which is also what follows an error.
func (c *client) end(producer *kgo.Client, sent *sending, isToCommit bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), callMax)
	defer cancel()
	if err := producer.Flush(ctx); err != nil {
		c.trouble("flush of "+sent.name, err)
	}
	isToCommit = isToCommit && !sent.hasFailed()
	op := c.invokeEnd(sent.name, isToCommit, nil)
	if isToCommit {
		err := producer.EndTransaction(ctx, kgo.TryCommit)
		if err == nil {
			c.lines.end(c.process, op, "end", "ok", none)
			return nil
		}
		c.trouble("commit of "+sent.name, err)
		c.lines.end(c.process, op, "end", "info", none)
		if errors.Is(err, kerr.OperationNotAttempted) || errors.Is(err, kerr.TransactionAbortable) {
			return producer.EndTransaction(ctx, kgo.TryAbort)
		}
		// Nobody knows how it ended. The library could ask for its next epoch with the one it has,
		// but if the commit was stored, a coordinator that took over since then knows only the epoch
		// after it, in Apache Kafka as well, and calls the library fenced. A new producer asks for
		// any epoch.
		return err
	}
	if err := producer.AbortBufferedRecords(ctx); err != nil {
		c.trouble("abort of "+sent.name, err)
	}
	if err := producer.EndTransaction(ctx, kgo.TryAbort); err != nil {
		c.trouble("abort of "+sent.name, err)
		c.lines.end(c.process, op, "end", "info", none)
		return err
	}
	c.lines.end(c.process, op, "end", "fail", none)
	return nil
}

// Reads committed records of a topic, writes as many to another, with the offsets.
func (c *client) pipe() error {
	session, err := kgo.NewGroupTransactSession(c.settings(
		kgo.ConsumerGroup(c.group),
		kgo.ConsumeTopics(c.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.RequireStableFetchOffsets(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			c.assigned()
		}),
	)...)
	if err != nil {
		return err
	}
	defer session.Close()
	for c.stopping.Err() == nil {
		askedNs := nowNs()
		ctx, cancel := context.WithTimeout(c.stopping, 200*time.Millisecond)
		polled := session.PollRecords(ctx, recordsMax)
		cancel()
		if records := polled.Records(); len(records) > 0 {
			if err := c.carry(session, records, askedNs); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *client) carry(
	session *kgo.GroupTransactSession, records []*kgo.Record, askedNs int64,
) error {
	name := c.next()
	positions := map[string]int64{}
	seen := [][3]any{}
	for _, record := range records {
		place := placed(record.Topic, record.Partition)
		positions[place] = record.Offset + 1
		value, _, _ := strings.Cut(string(record.Value), ":")
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			panic(err)
		}
		seen = append(seen, [3]any{place, record.Offset, number})
	}
	c.lines.look(c.process, "poll", askedNs, facts{
		"consumer": c.process, "stretch": c.stretch.Load(), "records": seen,
		"is_committed_only": true, "transaction": name,
	})
	if err := session.Begin(); err != nil {
		c.trouble("begin of "+name, err)
		return err
	}
	sent := c.newSending(name)
	for range records {
		sent.send(session.Produce, c.output, int32(c.chance.Intn(c.partitions)))
	}
	return c.endSession(session, sent, positions)
}

func (c *client) endSession(
	session *kgo.GroupTransactSession, sent *sending, positions map[string]int64,
) error {
	ctx, cancel := context.WithTimeout(context.Background(), callMax)
	defer cancel()
	isToCommit := c.isToCommit()
	op := c.invokeEnd(sent.name, isToCommit, positions)
	isCommitted, err := session.End(ctx, kgo.TransactionEndTry(isToCommit))
	switch {
	case err != nil:
		c.trouble("end of "+sent.name, err)
		c.lines.end(c.process, op, "end", "info", none)
		return err
	case isCommitted:
		c.lines.end(c.process, op, "end", "ok", none)
		return nil
	case isToCommit:
		c.trouble("end of "+sent.name, errAborted)
	}
	c.lines.end(c.process, op, "end", "fail", none)
	c.assigned() // The session reads again from what the group has committed.
	return nil
}

func (c *client) assigned() {
	c.lines.look(c.process, "assign", nowNs(), facts{
		"consumer": c.process, "stretch": c.stretch.Add(1), "starts": map[string]int64{},
	})
}

func (c *client) next() string {
	c.transactions++
	return fmt.Sprintf("%s/%d", c.process, c.transactions)
}

func (c *client) isToCommit() bool {
	return c.chance.Intn(abortOneIn) != 0
}

func (c *client) invokeEnd(name string, isToCommit bool, positions map[string]int64) int64 {
	told := facts{"transaction": name, "has_tried_commit": isToCommit}
	if positions != nil {
		told["group"], told["offsets"] = c.group, positions
	}
	return c.lines.invoke(c.process, "end", told)
}

func placed(topic string, partition int32) string {
	return fmt.Sprintf("%s-%d", topic, partition)
}

func payload(value int64) []byte {
	return []byte(strconv.FormatInt(value, 10) + padding)
}

func producerOf(c *client) string {
	return fmt.Sprintf("%s/%d", c.process, c.restarts)
}
