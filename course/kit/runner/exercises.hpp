// The exercises as they are built: what they are about, and the texts of their files.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tally::lesson {

struct Exercise {
    int number = 0;
    std::string slug, title;
    int minutes = 0;
    std::string lesson;
    std::vector<std::string> functions, hints;
    std::string why;
    std::vector<std::pair<std::string, std::string>> mistakes;  // name and sentence

    std::string stem() const;  // 05_divide
};

// Where they lie, how an answer is compiled, and all of them by number. Throws std::runtime_error.
struct Exercises {
    explicit Exercises(const std::string& folder);  // of the build, which has exercise-checks and settings

    // By slug, a part of one, stem or number; otherwise nullptr, and a sentence in `message`.
    const Exercise* find(const std::string& which, std::string& message) const;

    std::string starting_text(const Exercise& exercise) const;
    // What an answer puts below the #include: "right", or a mistake by its name.
    std::string answer(const Exercise& exercise, const std::string& name) const;
    // As a file of its own.
    std::string whole_answer(const Exercise& exercise, const std::string& name) const;
    // As the exercise declares it, with what is said about it.
    std::string declaration(const Exercise& exercise, const std::string& function) const;

    std::string checks;                 // the program that judges
    std::string mistakes;               // the folder of those that the build has written in full
    std::string sources;                // the folder exercises/ of the checkout
    std::vector<std::string> compiler;  // and its words, but for the file
    std::vector<Exercise> all;
};

// The text of a file. Throws std::runtime_error.
std::string text_of(const std::string& path);

}  // namespace tally::lesson
