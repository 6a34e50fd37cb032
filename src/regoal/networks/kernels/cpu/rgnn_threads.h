/* Shards of a batch beside each other. Threads are started when they are first wanted, and then
 * wait for the next call; the one that calls works too. */
#include <pthread.h>

/* One shard's part of a call; not 0 where there was no memory. */
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
    int busy; /* whether some thread is in a call */
    Part *part;
    const void *call;
    int64_t count, next, done, failed; /* shards: all, the first that nobody has, done */
    int64_t threads;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begun = PTHREAD_COND_INITIALIZER,
          .ended = PTHREAD_COND_INITIALIZER};

/* A copy of the process has none of its threads. */
static void forget_threads(void) {
    pthread_mutex_init(&pool.lock, 0);
    pthread_cond_init(&pool.begun, 0);
    pthread_cond_init(&pool.ended, 0);
    pool.busy = 0, pool.count = pool.next = 0, pool.threads = 0;
}

__attribute__((constructor)) static void on_load(void) { pthread_atfork(0, 0, forget_threads); }

/* Work on shards as long as there are any that nobody has; the lock is held before and after. */
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

/* So many threads beside the caller's, or as many as can be had. */
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

/* Every shard's part; not 0 where one has failed. Where another thread is in a call already, the
 * shards of this one follow each other. */
static int64_t beside_each_other(int64_t count, Part *part, const void *call) {
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
