#!/bin/sh
# Score what has been delivered to `landing`, and watch it. Run it as often as you like: it does only what is missing.
uqprism score landing -o scored --resume --on-bad null --max-bad 1% --summary night.json --log-file night.log
code=$?
case $code in
0) echo "nightly: all is scored, publish" ;;
3) echo "nightly: publish, and ask for the files named above again" ;;
5) echo "nightly: an earlier job is still at work, leave it alone" ;;
*) echo "nightly: do not publish (exit code $code)" ;;
esac
case $code in 0 | 3 | 4)
    uqprism watch reference.parquet scored --state watch --window 500 --json watch.jsonl
    changed=$?
    case $changed in
    0) ;;
    6) echo "nightly: the predictions have changed, see above" && code=6 ;;
    *) echo "nightly: not watched (exit code $changed)" ;;
    esac
    ;;
esac
exit $code
