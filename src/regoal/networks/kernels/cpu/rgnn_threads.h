/* Shards of a batch in parallel. Threads are started when they are first needed, and then wait for
 * the next call. The calling thread works too. */
#include <pthread.h>

/* A function that does one shard's part of a call; returns not 0 if there was no memory. */
typedef int64_t Part(const void *call, int64_t shard);

#define STACK (8 << 20)

static int64_t run_part(Part *part, const void *call, int64_t shard) {
    FLUSH_BEGIN;
    int64_t failed = part(call, shard);
    FLUSH_END;
    return failed;
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    int busy; /* not 0 while some thread is in a call */
    Part *part;
    const void *call;
    int64_t count, next, done, failed; /* of shards: all, the first not taken, those done;
                                        * not 0 if one has failed */
    int64_t threads;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begun = PTHREAD_COND_INITIALIZER,
          .ended = PTHREAD_COND_INITIALIZER};

/* Start without threads in a forked process: it has none of its parent's. */
static void forget_threads(void) {
    pthread_mutex_init(&pool.lock, 0);
    pthread_cond_init(&pool.begun, 0);
    pthread_cond_init(&pool.ended, 0);
    pool.busy = 0, pool.count = pool.next = 0, pool.threads = 0;
}

__attribute__((constructor)) static void on_load(void) { pthread_atfork(0, 0, forget_threads); }

/* Work on shards while any is not taken; the lock is held before and after. */
static void take_shards(void) {
    while (pool.next < pool.count) {
        int64_t shard = pool.next++;
        pthread_mutex_unlock(&pool.lock);
        int64_t failed = run_part(pool.part, pool.call, shard);
        pthread_mutex_lock(&pool.lock);
        pool.failed |= failed;
        if (++pool.done == pool.count) pthread_cond_signal(&pool.ended);
    }
}

static void *wait_and_work(void *unused) {
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        take_shards();
        pthread_cond_wait(&pool.begun, &pool.lock);
    }
    return unused;
}

/* Start threads until there are as many as wanted, or until no more can be started. */
static void start_threads(int64_t wanted) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (pool.threads >= wanted || pthread_attr_init(&attributes)) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    while (pool.threads < wanted && !pthread_create(&thread, &attributes, wait_and_work, 0))
        pool.threads++;
    pthread_attr_destroy(&attributes);
}

/* Do every shard's part; returns not 0 if one has failed. If another thread is in a call already,
 * this call does its shards one after the other. */
static int64_t run_shards(int64_t count, Part *part, const void *call) {
    int64_t failed = 0;
    pthread_mutex_lock(&pool.lock);
    if (count == 1 || pool.busy) {
        pthread_mutex_unlock(&pool.lock);
        for (int64_t shard = 0; shard < count; shard++) failed |= run_part(part, call, shard);
        return failed;
    }
    pool.busy = 1, pool.part = part, pool.call = call;
    pool.count = count, pool.next = pool.done = pool.failed = 0;
    start_threads(count - 1);
    pthread_cond_broadcast(&pool.begun);
    take_shards();
    while (pool.done < pool.count) pthread_cond_wait(&pool.ended, &pool.lock);
    failed = pool.failed, pool.busy = 0;
    pthread_mutex_unlock(&pool.lock);
    return failed;
}
