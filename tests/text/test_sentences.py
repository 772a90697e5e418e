"""Sentences against hand-made gold; `|` marks where one ends."""

from __future__ import annotations

import random

import pytest

from keras_bert_impl.text.sentences import detect_language, split_sentences

ENGLISH = """
Hello World. |My name is Jonas.
What is your name? |My name is Jonas.
There it is! |I found it.
My name is Jonas E. Smith.
Please turn to p. 55.
Were Jane and co. at the party?
They closed the deal with Pitt, Briggs & Co. at noon.
Let's ask Jane and co. |They should know.
They closed the deal with Pitt, Briggs & Co. |It closed yesterday.
I can see Mt. Fuji from here.
St. Michael's Church is on 5th st. near the light.
That is JFK Jr.'s book.
I visited the U.S.A. last year.
I live in the E.U. |How about you?
I live in the U.S. |How about you?
I work for the U.S. Government in Virginia.
I have lived in the U.S. for 20 years.
She has $100.00 in her bag.
She has $100.00. |It is in her bag.
He teaches science (He previously worked for 5 years as an engineer.) at the local University.
Her email is Jane.Doe@example.com. |I sent her an email.
The site is: https://www.example.50.com/new-site/awesome_content.html. |Please check it out.
She turned to him, 'This is great.' she said.
She turned to him, "This is great." she said.
She turned to him, "This is great." |She held the book out to show him.
Hello!! |Long time no see.
Hello?! |Is that you?
"Stop!" he said. |"Why?"
"Who is it?" Mary asked. |"Me."
"Who is it?" |Mary opened the door.
Thoreau argues that the laws will appear less complex. . . . |Then he goes on.
You can find it at N°. 1026.253.553. |That is where the treasure is.
If words are left off at the end ... and then it goes on, nothing ends.
I wasn't really ... well, what I mean ... see ... it is so.
I never meant that.... |She left the store.
He wrote it… |She read it.
J. R. R. Tolkien wrote it. |C. S. Lewis read it.
George W. Bush met Dr. Angela Merkel.
Mr. and Mrs. Smith saw Prof. Jones at 5 p.m. |They left.
In No. 5 it is said, cf. Fig. 3 and Eq. 7.
Is it true? |No. |He lied.
The pages pp. 12 and Vol. II of Ch. 4 are lost.
Smith et al. Nature paper was read. |Then Smith et al. |The end.
Fruit, e.g. Apples, i.e. Malus, is good.
It grew by 3.5 percent. |In 1999 it fell 2.1.
It happened in 1999. |Nobody saw it.
He came on Jan. 5. |He left on Feb. 7.
He was ill. |Mary came. |On the mar. |Ok.
1. Introduction is short. |2. Methods are long.
So do I. |John agrees with I. Newton.
It is so (see above). |It is not so [really]. |(See below.) |End.
It is so.[12] |It is not.
He earned a Ph.D. |The work was good.
The Alphabet (formerly Google Inc.) chief left Apple Inc. |He won.
Roe v. Wade was decided. |Brown vs. Board too.
MR. SMITH CAME. |HE LEFT.
It runs on Node.js and .NET 4.5. |Python 3.11 too.
Wait... what?
The word 力 is here. |So is 日本。|Next.
word . |The tokens are apart .
One sentence
""".strip()

CHINESE = """
今天天气很好。|我们去公园吧！|你说呢？
他说：“我走了。”|她没有回答。
“你好！”|他说。
“你来了吗？”，他问。
他大喊：“快跑！”，然后消失了。
「你去哪裡？」|他問。|「回家。」
『好！』|他說。
圆周率约为3.14159，不是3.2。|对吗？！|对。
我……|我不知道。
春天到了；|花开了；|鸟叫了。
（见图3。）|下一句。
他生于1950年（庚寅年）。|后来去了北京。
TensorFlow 2.20 是谷歌的开源软件库。|它支持 GPU 与 TPU。|Keras 也一样!|很好?|是的.
他在Apple Inc.工作。|月薪3,000.50元。
真的吗???|真的!!!
这是《红楼梦》。|那是《西游记》！|都好。
书名是《你好吗？》，很有名。
没有句号的一行
他说完了...|然后走了。
第一句。 |第二句。\t|第三句。
I like 北京 very much，真的。|他说 “OK.” |然后走了。
这个词（英语：Word）很常见。|另一个（见 e.g. Smith）也是。
""".replace("\\t", "\t").strip()


@pytest.mark.parametrize("gold", ENGLISH.splitlines())
def test_english(gold):
    assert split_sentences(gold.replace("|", "")) == [s.strip() for s in gold.split("|")]


@pytest.mark.parametrize("gold", CHINESE.splitlines())
def test_chinese(gold):
    assert split_sentences(gold.replace("|", ""), language="zh") == [
        s.strip() for s in gold.split("|")
    ]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("Plain text.", "en"),
        ("Déjà vu, naïve, Ελληνικά и русский.", "en"),
        ("The sign for force is 力.", "en"),
        ("我们用TensorFlow训练模型。", "zh"),
    ],
)
def test_language_is_told_by_the_share_of_chinese(text, language):
    assert detect_language(text) == language


def test_languages_differ_in_stops_without_space():
    assert split_sentences("力；力…力", language="en") == ["力；力…力"]
    assert split_sentences("力；力…力", language="zh") == ["力；", "力…", "力"]
    assert split_sentences("力；力…力") == ["力；", "力…", "力"]


def test_unknown_language():
    with pytest.raises(ValueError, match="language must be one of auto, en, zh, got 'de'"):
        split_sentences("Ein Satz.", language="de")


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000"])
def test_nothing_but_space(text):
    assert split_sentences(text) == []


@pytest.mark.parametrize("language", ["en", "zh", "auto"])
def test_sentences_joined_are_the_text(language):
    parts = [
        *"aBI .!?…。！？；，,:\n\t\"'”’」』）)([“「—-1",
        *"力日",
        "Mr",
        "e.g.",
        "U.S.",
        " The ",
    ]
    random_source = random.Random(0)
    for _ in range(2000):
        text = "".join(random_source.choices(parts, k=random_source.randrange(40)))
        sentences = split_sentences(text, language=language)
        assert "".join("".join(sentences).split()) == "".join(text.split()), text
        assert all(sentence and sentence == sentence.strip() for sentence in sentences), text


ODD = [". ", "a.\n", ".)", "。，", "x", "I. ", '!" A', '"', "."]


@pytest.mark.parametrize(
    "text",
    [*(part * 10**6 for part in ODD), "。" * 10**6 + "，", "!” " + "A" * 10**6],
    ids=lambda text: text[:4],
)
def test_time_is_linear_in_odd_text(text):
    """With quadratic time this would not end within hours."""
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_real_text_is_split_where_editors_split_it(shared):
    """Google's sample has one sentence a line, and quotes of several sentences among them."""
    lines = (shared / "data/pretrain_en/google_bert_sample_text.txt").read_text().splitlines()
    lines = [line for line in lines if line.strip()]
    one = sum(len(split_sentences(line)) == 1 for line in lines)
    assert one >= 0.9 * len(lines)
