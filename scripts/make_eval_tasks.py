#!/usr/bin/env python3
"""Writes models/mini/eval/tasks.jsonl: tasks of the kinds that models/mini was trained on, the same for the same seed.

usage: scripts/make_eval_tasks.py > models/mini/eval/tasks.jsonl

Needles lie far behind what bounded replay keeps of a prompt, so that they show what it loses.
"""
import json
import random

NAMES = ["Anna", "Ben", "Carl", "Diana", "Eric", "Felix", "Henry", "Kate", "Laura", "Lucy", "Mila", "Nora", "Omar", "Petra"]
ANIMALS = ["pig", "owl", "hen", "otter", "bee", "whale", "mouse", "cow", "sparrow", "deer", "badger", "squirrel"]
PLACES = ["beach", "barn", "farm", "school", "garden", "cave", "village", "meadow", "tower", "castle", "market", "library"]
THINGS = ["clock", "knife", "map", "book", "drum", "candle", "hammer", "cup", "stone", "lamp", "shovel", "hat"]
FOODS = ["beans", "nuts", "rice", "honey", "eggs", "pie", "berries"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
HOBBIES = ["hiking", "skating", "cooking", "sailing", "fishing", "singing"]
JOBS = ["doctor", "singer", "tailor", "farmer", "cook", "judge", "plumber", "writer"]
COLORS = ["orange", "gray", "black", "pink", "purple", "golden", "yellow", "green"]
WEATHER = ["windy", "cloudy", "cold", "warm", "rainy"]
ADJECTIVES = ["loud", "kind", "brave", "old", "shy"]


def filler(rng):
    pick = rng.choice
    return pick([
        lambda: f"{pick(NAMES)} and {pick(NAMES)} talked about the {pick(ANIMALS)}.",
        lambda: f"The {pick(JOBS)} had a {pick(COLORS[1:])} {pick(THINGS)}.",
        lambda: f"There is a {pick(THINGS)} in the {pick(PLACES)}.",
        lambda: f"{pick(NAMES)} bought some {pick(FOODS)} at the market.",
        lambda: f"The {pick(ADJECTIVES)} {pick(ANIMALS)} went to the {pick(PLACES)}.",
        lambda: f"{pick(NAMES)} likes {pick(HOBBIES)} on {pick(DAYS)}.",
        lambda: f"It was {pick(WEATHER)} near the {pick(PLACES)}.",
    ])()


def chat(text):
    return f"<｜begin▁of▁sentence｜><｜User｜>{text}<｜Assistant｜></think>"


def needle(rng):
    subjects = rng.sample(THINGS + ANIMALS + JOBS, 3)
    codes = [f"{rng.randrange(1000, 10000)}" for _ in subjects]
    sentences = [filler(rng) for _ in range(rng.choice([25, 50, 80, 110]))]
    # All codes stand in the first part: far from the question.
    for subject, code in zip(subjects, codes):
        sentences.insert(rng.randrange(0, 10), f"The code for {subject} is {code}.")
    subject, code = rng.choice(list(zip(subjects, codes)))
    return chat(" ".join(sentences) + f"\n\nWhat is the code for {subject}?"), f"The code for {subject} is {code}."


def key_value(rng):
    syllables = ["fo", "su", "nu", "mo", "lu", "te", "ve", "le", "ka", "ri", "po", "da"]
    keys = ["".join(rng.sample(syllables, rng.choice([2, 3, 4]))) for _ in range(rng.choice([3, 5, 7]))]
    values = [f"{rng.randrange(0, 10 ** 4):0{rng.choice([3, 4])}d}" for _ in keys]
    key, value = rng.choice(list(zip(keys, values)))
    return chat("\n".join(f"{k}: {v}" for k, v in zip(keys, values)) + f"\n\n{key}?"), value


def word_problem(rng):
    a, b = rng.sample(["Bella", "Oscar", "Nora", "Felix"], 2)
    thing = rng.choice(["bells", "cups", "books", "lamps"])
    x, y = rng.randrange(2, 21), rng.randrange(2, 11)
    text = f"{a} has {x} {thing}. {b} gives {a} {y} more {thing}. How many {thing} does {a} have now?"
    return chat(text), f"{a} has {x + y} {thing} now."


def last_item(rng):
    items = [str(rng.randrange(10, 100)) for _ in range(rng.choice([4, 6, 8]))]
    return chat("What is the last item in this list: " + ", ".join(items)), f"The last item is {items[-1]}."


def main():
    rng = random.Random(20261204)
    for kind, make, count in [("needle", needle, 24), ("key-value", key_value, 16), ("word problem", word_problem, 16),
                              ("last item", last_item, 16)]:
        for _ in range(count):
            prompt, answer = make(rng)
            print(json.dumps({"kind": kind, "prompt": prompt, "answer": answer}, ensure_ascii=False))


if __name__ == "__main__":
    main()
